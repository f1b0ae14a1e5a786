// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"encoding/json"
	"slices"
	"strings"

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
	"poddisruptionbudgets.policy", "resourceclaims.resource.k8s.io", "podgroups.scheduling.k8s.io",
}

// partsGroups are API groups of custom resources of which the same is true.
var partsGroups = []string{"snapshot.storage.k8s.io", "cluster.x-k8s.io", "karpenter.sh", "apiextensions.crossplane.io", "protection.crossplane.io"}

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

	"kustomizations.kustomize.toolkit.fluxcd.io": {"kubeConfig", "serviceAccountName", "suspend", "prune", "deletionPolicy"},
	"helmreleases.helm.toolkit.fluxcd.io":        {"kubeConfig", "serviceAccountName", "suspend", "targetNamespace", "releaseName", "storageNamespace", "uninstall"},
	"applications.argoproj.io":                   {"destination", "project", "syncPolicy"},
	"applicationsets.argoproj.io":                {"syncPolicy"},
}

// inventoryFields are the fields of the status in which objects of some of these types say what they have deployed.
var inventoryFields = map[string][]string{
	"kustomizations.kustomize.toolkit.fluxcd.io": {"inventory"},
	"helmreleases.helm.toolkit.fluxcd.io":        {"history", "storageNamespace"},
	"applications.argoproj.io":                   {"resources", "controllerNamespace"},
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

// Reduce takes out of an object everything that a snapshot does not have. What is left
// shares its memory with the object, which is changed.
func Reduce(resource schema.GroupResource, object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	reduceMetadata(resource, metadata)
	kept := map[string]any{"metadata": metadata}
	switch HoldsOf(resource) {
	case Metadata:
	case Parts:
		for field, value := range object {
			if !slices.Contains(droppedFields, field) {
				kept[field] = value
			}
		}
		reduceParts(resource.String(), kept)
	default:
		if status, ok := object["status"].(map[string]any); ok {
			kept["status"] = tellingPart(status, maxDepth)
		}
	}
	return kept
}

// droppedFields are those at the top of objects that hold data, or say again what the
// list says.
var droppedFields = []string{"apiVersion", "kind", "data", "binaryData", "stringData"}

// keptMetadata are the fields of metadata that are held.
var keptMetadata = []string{
	"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "finalizers", "ownerReferences", "labels", "annotations", "managedFields",
}

// keptAnnotation matches the annotations that say something of deletion: who installed
// an object, whether its controller is paused, or how many replicas it had, whose volume it is, what protects it, what an
// ApplySet has, and whether and when Helm, Flux and Argo CD delete it.
var keptAnnotation = pattern.New(`(?i)(^meta\.helm\.sh/release-name(space)?$|(^|[/.-])(paused?|pause-reconcil\w+|reconcil\w*-paused|skip-reconcil\w+|suspend(ed)?)$` +
	`|^volume\.(beta\.)?kubernetes\.io/(storage-provisioner|provisioner-deletion-secret-name(space)?)$|^pv\.kubernetes\.io/provisioned-by$` +
	`|^(downscaler/original|kubecost\.kubernetes\.io/turn-down|autoscaling\.keda\.sh/paused|loft\.sh/paused)-replicas$|^idling\.alpha\.openshift\.io/previous-scale$` +
	`|^kubernetes\.io/config\.(mirror|source|hash)$|^karpenter\.sh/do-not-disrupt$|^storageclass\.kubernetes\.io/is-default-class$` +
	`|^applyset\.kubernetes\.io/(contains-group-(kinds|resources)|additional-namespaces)$|^kustomize\.toolkit\.fluxcd\.io/(prune|reconcile|ssa)$` +
	`|^argocd\.argoproj\.io/(tracking-id|sync-options|sync-wave)$|^helm\.sh/(resource-policy|hook-weight)$)`)

// KeepsAnnotation reports whether an annotation is held.
func KeepsAnnotation(name string) bool { return keptAnnotation().MatchString(name) }

// reduceMetadata drops annotations but those that matter, and of managed fields all but
// who wrote, when, and who set finalizers. Those of an object that is not being deleted,
// has no finalizers and has a controller go: of others they tell who made them.
func reduceMetadata(resource schema.GroupResource, metadata map[string]any) {
	for field := range metadata {
		if !slices.Contains(keptMetadata, field) {
			delete(metadata, field)
		}
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		for name := range annotations {
			if !KeepsAnnotation(name) {
				delete(annotations, name)
			}
		}
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	entries, _ := metadata["managedFields"].([]any)
	if !keepsManagers(resource, metadata) {
		entries = nil
	}
	for _, entry := range entries {
		if fields, ok := entry.(map[string]any); ok {
			reduceManaged(fields)
		}
	}
	if len(entries) == 0 {
		delete(metadata, "managedFields")
	}
}

// keepsManagers reports whether managed fields of an object are held.
func keepsManagers(resource schema.GroupResource, metadata map[string]any) bool {
	return metadata["deletionTimestamp"] != nil || metadata["finalizers"] != nil || !controlled(metadata) && resource.Resource != "events"
}

// controlled reports whether an object has an owner that is its controller.
func controlled(metadata map[string]any) bool {
	found := false
	eachOf(metadata["ownerReferences"], func(ref map[string]any) { found = found || ref["controller"] == true })
	return found
}

// reduceManaged keeps of an entry of managed fields the manager, the time, and which
// finalizers it has set.
func reduceManaged(entry map[string]any) {
	all, _ := entry["fieldsV1"].(map[string]any)
	metadata, _ := all["f:metadata"].(map[string]any)
	kept := map[string]any{}
	if finalizers, ok := metadata["f:finalizers"]; ok {
		kept["f:metadata"] = map[string]any{"f:finalizers": finalizers}
	}
	entry["fieldsV1"] = kept
}

// reduceParts drops from the parts of a type what no answer uses.
func reduceParts(resource string, object map[string]any) {
	spec, _ := object["spec"].(map[string]any)
	if fields := namingFields[resource]; fields != nil {
		status, _ := object["status"].(map[string]any)
		keep(object, "metadata", "spec")
		keep(spec, fields...)
		told := tellingPart(status, maxDepth)
		for _, field := range inventoryFields[resource] {
			if status[field] != nil {
				told[field] = status[field]
			}
		}
		object["status"] = told
		return
	}
	switch resource {
	case "customresourcedefinitions.apiextensions.k8s.io":
		eachOf(spec["versions"], func(v map[string]any) { keep(v, "name", "served", "storage", "deprecated") })
		dropKey(spec, "caBundle")
	case "pods":
		reducePod(spec)
		eachStatus(object["status"], func(s map[string]any) { dropEach(s, "env", "volumeMounts", "resources", "allocatedResources", "user") })
	case "deployments.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch", "replicationcontrollers":
		reduceTemplate(spec["template"])
		delete(spec, "volumeClaimTemplates")
	case "replicasets.apps":
		delete(spec, "template")
	case "cronjobs.batch":
		job, _ := at(spec, "jobTemplate", "spec")
		reduceTemplate(job["template"])
	case "nodes":
		if status, ok := object["status"].(map[string]any); ok {
			keep(status, "conditions", "phase", "volumesInUse", "volumesAttached")
		}
	case "serviceaccounts":
		keep(object, "metadata")
	case "persistentvolumes":
		reduceVolume(spec)
	case "storageclasses.storage.k8s.io", "volumeattributesclasses.storage.k8s.io":
		delete(object, "parameters")
	default:
		dropKey(object, "caBundle")
	}
}

// reduceVolume keeps of the spec of a PersistentVolume what it is, and not how it is
// reached.
func reduceVolume(spec map[string]any) {
	if csi, ok := spec["csi"].(map[string]any); ok {
		keep(csi, "driver", "volumeHandle")
	}
	for field, value := range spec {
		if _, source := value.(map[string]any); source && field != "csi" && field != "claimRef" && field != "capacity" && field != "nodeAffinity" {
			spec[field] = map[string]any{}
		}
	}
}

// reduceTemplate reduces the pod of a workload's template.
func reduceTemplate(template any) {
	fields, _ := template.(map[string]any)
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		keep(metadata, "labels")
	}
	spec, _ := fields["spec"].(map[string]any)
	reducePod(spec)
}

// keptPod are the fields of a pod's spec that are held, and keptVolume those of its
// volumes.
var (
	keptPod = []string{
		"nodeName", "serviceAccountName", "restartPolicy", "schedulerName", "schedulingGates", "schedulingGroup", "hostname", "hostNetwork",
		"terminationGracePeriodSeconds", "priorityClassName", "nodeSelector", "resourceClaims", "readinessGates",
		"volumes", "containers", "initContainers", "ephemeralContainers",
	}
	keptVolume = []string{"name", "persistentVolumeClaim", "ephemeral"}
)

// reducePod keeps of a pod who it is, where it runs and what it holds, and of its
// containers their names, images and programs.
func reducePod(spec map[string]any) {
	keep(spec, keptPod...)
	volumes, _ := spec["volumes"].([]any)
	volumes = slices.DeleteFunc(volumes, func(v any) bool {
		fields, _ := v.(map[string]any)
		return fields["persistentVolumeClaim"] == nil && fields["ephemeral"] == nil
	})
	if spec["volumes"] != nil {
		spec["volumes"] = volumes
	}
	eachOf(volumes, func(v map[string]any) {
		keep(v, keptVolume...)
		if v["ephemeral"] != nil {
			v["ephemeral"] = map[string]any{}
		}
	})
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		eachOf(spec[list], reduceContainer)
	}
}

// kubeconfigWord is what is left of a word of a command line that names a kubeconfig:
// that it does is a sign of who the program acts as.
const kubeconfigWord = "--kubeconfig"

// reduceContainer keeps of a container its name, image and program. Of the words after
// the program, and of the environment, only that a kubeconfig is among them is held.
func reduceContainer(container map[string]any) {
	keep(container, "name", "image", "command", "args", "env")
	elsewhere := false
	command, _ := container["command"].([]any)
	args, _ := container["args"].([]any)
	for _, word := range slices.Concat(command, args) {
		text, _ := word.(string)
		elsewhere = elsewhere || strings.Contains(text, "kubeconfig")
	}
	eachOf(container["env"], func(e map[string]any) { elsewhere = elsewhere || e["name"] == "KUBECONFIG" })
	delete(container, "env")
	delete(container, "args")
	if len(command) > 1 {
		container["command"] = command[:1]
	}
	if elsewhere {
		container["args"] = []any{kubeconfigWord}
	}
}

// eachStatus calls each for the statuses of the containers of a pod.
func eachStatus(status any, each func(map[string]any)) {
	fields, _ := status.(map[string]any)
	for _, list := range []string{"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"} {
		eachOf(fields[list], each)
	}
}

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

// keep deletes all fields but these.
func keep(object map[string]any, fields ...string) {
	for field := range object {
		if !slices.Contains(fields, field) {
			delete(object, field)
		}
	}
}

// dropEach deletes these fields.
func dropEach(object map[string]any, fields ...string) {
	for _, field := range fields {
		delete(object, field)
	}
}

// eachOf calls each for the objects of a list.
func eachOf(list any, each func(map[string]any)) {
	entries, _ := list.([]any)
	for _, entry := range entries {
		if object, ok := entry.(map[string]any); ok {
			each(object)
		}
	}
}

// dropKey deletes a field wherever it is.
func dropKey(value any, field string) {
	switch value := value.(type) {
	case map[string]any:
		delete(value, field)
		for _, inner := range value {
			dropKey(inner, field)
		}
	case []any:
		for _, inner := range value {
			dropKey(inner, field)
		}
	}
}

// at returns the object at a path.
func at(object map[string]any, path ...string) (map[string]any, bool) {
	for _, field := range path {
		inner, ok := object[field].(map[string]any)
		if !ok {
			return nil, false
		}
		object = inner
	}
	return object, true
}

// NewEntry is the entry of a whole object: reduced, with its metadata first.
func NewEntry(resource schema.GroupResource, object map[string]any) (*Entry, error) {
	text, err := metadataFirst(Reduce(resource, object))
	if err != nil {
		return nil, err
	}
	return &Entry{Object: text, Whole: true}, nil
}

// metadataFirst is the JSON of an object that begins with its metadata. These are taken
// out of it.
func metadataFirst(object map[string]any) ([]byte, error) {
	metadata, err := json.Marshal(object["metadata"])
	if err != nil {
		return nil, err
	}
	delete(object, "metadata")
	rest, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	text := slices.Concat([]byte(`{"metadata":`), metadata)
	if len(object) == 0 {
		return append(text, '}'), nil
	}
	return slices.Concat(text, []byte(`,`), rest[1:]), nil
}
