// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
)

// metadataTypes are those of which nothing but metadata is read, ever: what they
// have beside it is data, or copies of other objects.
var metadataTypes = []string{"secrets", "configmaps", "endpoints", "controllerrevisions.apps", "podtemplates"}

// partsTypes are those of which explanations and predictions use spec and status.
var partsTypes = []string{
	"namespaces", "nodes", "pods", "services", "persistentvolumes", "persistentvolumeclaims", "serviceaccounts", "events",
	"deployments.apps", "statefulsets.apps", "daemonsets.apps", "replicasets.apps", "replicationcontrollers",
	"jobs.batch", "cronjobs.batch", "leases.coordination.k8s.io", "endpointslices.discovery.k8s.io",
	"roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io",
	"clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
	"customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io",
	"validatingwebhookconfigurations.admissionregistration.k8s.io", "mutatingwebhookconfigurations.admissionregistration.k8s.io",
	"validatingadmissionpolicies.admissionregistration.k8s.io", "validatingadmissionpolicybindings.admissionregistration.k8s.io",
	"mutatingadmissionpolicies.admissionregistration.k8s.io", "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
	"volumeattachments.storage.k8s.io", "csidrivers.storage.k8s.io", "csinodes.storage.k8s.io", "storageclasses.storage.k8s.io",
	"volumeattributesclasses.storage.k8s.io", "servicecidrs.networking.k8s.io", "ipaddresses.networking.k8s.io",
	"poddisruptionbudgets.policy", "resourcequotas", "resourceclaims.resource.k8s.io", "podgroups.scheduling.k8s.io",
}

// partsGroups are API groups of custom resources of which the same is true.
var partsGroups = []string{"snapshot.storage.k8s.io", "cluster.x-k8s.io", "karpenter.sh", "apiextensions.crossplane.io",
	"protection.crossplane.io"}

// namingFields are the fields of the spec in which objects of further types name what they do not
// work without: those and what a summary has are held.
var namingFields = map[string][]string{
	"ingresses.networking.k8s.io":          {"ingressClassName"},
	"gateways.gateway.networking.k8s.io":   {"gatewayClassName"},
	"externalsecrets.external-secrets.io":  {"secretStoreRef"},
	"pushsecrets.external-secrets.io":      {"secretStoreRefs"},
	"certificates.cert-manager.io":         {"issuerRef"},
	"horizontalpodautoscalers.autoscaling": {"scaleTargetRef", "minReplicas"},
	"scaledobjects.keda.sh":                {"scaleTargetRef", "minReplicaCount", "idleReplicaCount"},

	"stacks.pulumi.com":                          {"destroyOnFinalize"},
	"kustomizations.kustomize.toolkit.fluxcd.io": {"kubeConfig", "serviceAccountName", "suspend", "prune", "deletionPolicy"},
	"helmreleases.helm.toolkit.fluxcd.io": {"kubeConfig", "serviceAccountName", "suspend", "targetNamespace", "releaseName",
		"storageNamespace", "uninstall", "driftDetection"},
	"applications.argoproj.io":    {"destination", "project", "syncPolicy"},
	"applicationsets.argoproj.io": {"syncPolicy"},
	"appprojects.argoproj.io": {"destinations", "clusterResourceWhitelist", "clusterResourceBlacklist",
		"namespaceResourceWhitelist", "namespaceResourceBlacklist"},
	"subscriptions.operators.coreos.com":          {"name"},
	"clusterserviceversions.operators.coreos.com": {"customresourcedefinitions", "cleanup", "replaces"},
}

// inventoryFields are the fields of the status in which objects of some of these types say what they have deployed.
var inventoryFields = map[string][]string{
	"kustomizations.kustomize.toolkit.fluxcd.io": {"inventory"},
	"helmreleases.helm.toolkit.fluxcd.io":        {"history", "storageNamespace"},
	"applications.argoproj.io":                   {"resources", "controllerNamespace"},
	"subscriptions.operators.coreos.com":         {"installedCSV", "currentCSV"},
}

// HoldsOf returns what a snapshot has of the objects of a type.
func HoldsOf(resource schema.GroupResource) Holds {
	switch name := resource.String(); {
	case slices.Contains(metadataTypes, name):
		return Metadata
	case slices.Contains(partsTypes, name), slices.Contains(partsGroups, resource.Group), namingFields[name] != nil:
		return Parts
	}
	return Summary
}

// keptAnnotation matches the annotations that say something of deletion: who installed
// an object, whether its controller is paused, or how many replicas it had, whose volume it is, what protects it, what an
// ApplySet has, and whether and when Helm, Flux and Argo CD delete it.
var keptAnnotation = pattern.New(`(?i)(^meta\.helm\.sh/release-name(space)?$|(^|[/.-])(paused?|pause-reconcil\w+|reconcil\w*-paused|skip-reconcil\w+|suspend(ed)?)$` +
	`|^volume\.(beta\.)?kubernetes\.io/(storage-provisioner|provisioner-deletion-secret-name(space)?)$|^pv\.kubernetes\.io/provisioned-by$` +
	`|^(downscaler/original|kubecost\.kubernetes\.io/turn-down|autoscaling\.keda\.sh/paused|loft\.sh/paused)-replicas$|^idling\.alpha\.openshift\.io/previous-scale$` +
	`|^kubernetes\.io/(config\.(mirror|source|hash)|service-account\.uid)$|^karpenter\.sh/do-not-disrupt$|^storageclass\.kubernetes\.io/is-default-class$` +
	`|^applyset\.kubernetes\.io/(tooling|contains-group-(kinds|resources)|additional-namespaces)$|^(kustomize\.toolkit\.fluxcd\.io/(prune|reconcile|ssa)|helm\.toolkit\.fluxcd\.io/driftDetection)$` +
	`|^(kapp\.k14s\.io/identity|objectset\.rio\.cattle\.io/id)$|^argocd\.argoproj\.io/(tracking-id|sync-options|sync-wave)$|^helm\.sh/(resource-policy|hook-weight)$)`)

// KeepsAnnotation reports whether an annotation is held.
func KeepsAnnotation(name string) bool { return keptAnnotation().MatchString(name) }

// maxDepth is how deep a status is looked into for texts, and tellingKey what those
// are called in which controllers say how things are.
const maxDepth = 5

var tellingKey = pattern.New(`(?i)(phase|state|status|ready|message|reason|error|description|conditions?|type|time|generation)`)

// tellingPart keeps of a status the texts in which controllers say how things are.
func tellingPart(fields map[string]any, depth int) map[string]any {
	kept := map[string]any{}
	for field, value := range fields {
		switch value := value.(type) {
		case map[string]any:
			if inner := tellingPart(value, depth-1); depth > 0 && len(inner) > 0 {
				kept[field] = inner
			}
		case []any:
			if list := tellingList(field, value, depth); len(list) > 0 {
				kept[field] = list
			}
		default:
			if tellingKey().MatchString(field) {
				kept[field] = value
			}
		}
	}
	return kept
}

// tellingList is tellingPart for a list. The entries keep their places.
func tellingList(field string, values []any, depth int) []any {
	var list []any
	found := false
	for _, value := range values {
		inner, ok := value.(map[string]any)
		switch {
		case ok && depth > 0:
			inner = tellingPart(inner, depth-1)
			found = found || len(inner) > 0
			list = append(list, inner)
		case !ok && tellingKey().MatchString(field):
			found = true
			list = append(list, value)
		}
	}
	if !found {
		return nil
	}
	return list
}
