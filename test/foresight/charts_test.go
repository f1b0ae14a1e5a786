// SPDX-License-Identifier: Apache-2.0

package foresight

// hooking is an operator that serves webhooks.
var hooking = []operator{{in: "$S", args: []string{"--serve=admission"}, mounts: []string{"cert"}}}

// guard is a webhook about deletions, with a failurePolicy.
func guard(policy string) string {
	return "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: toy-$X}, webhooks: [{name: toys.$GROUP, " +
		"rules: [{apiGroups: [$GROUP], apiVersions: ['*'], operations: [DELETE], resources: ['*']}], failurePolicy: " + policy + ", sideEffects: None, timeoutSeconds: 3, " +
		"admissionReviewVersions: [v1], clientConfig: $CALL}]}\n---\n"
}

// chartList are the charts that TestUninstall plays.
var chartList = []chart{
	{name: "plain", about: "an application without an operator", layout: layout{noOperator: true, objects: []objects{}}, types: "outside",
		more: "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: $S}}\n---\n" +
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: $S}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: registry.example.com/web}]}}}}\n"},
	{name: "types-in-templates", about: "an operator with its definition in templates, and objects", objects: true, want: []string{"toy/one, toy/two -n $A: Deployment"}},
	{name: "types-in-templates-user", about: "the same with objects of a user, which go with the definition"},
	{name: "types-in-crds", about: "the definition is in crds/, and the objects are in the chart", types: "crds", objects: true, want: []string{"in the chart's crds/"}},
	{name: "user-objects", about: "the definition is in crds/, and a user has made the objects", types: "crds", want: []string{"HANGS LATER"}},
	{name: "types-kept", about: "the definition is kept by its annotation, and a user has made the objects", types: "kept", want: []string{"HANGS LATER", "helm.sh/resource-policy: keep"}},
	{name: "rights-elsewhere", about: "the operator's rights are not of the chart, but its account is", layout: layout{operators: []operator{{grants: "shared", watch: "$A"}}},
		before: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: toy-$X-admin}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, " +
			"subjects: [{kind: ServiceAccount, name: toy-$X, namespace: $S}]}\n---\n", types: "crds", objects: true},
	{name: "policies", about: "resource policies: keep, and a value that Helm does not know", layout: layout{noOperator: true, objects: []objects{}}, types: "outside",
		more: "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, namespace: $S, annotations: {helm.sh/resource-policy: ' Keep '}}}\n---\n" +
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: odd, namespace: $S, annotations: {helm.sh/resource-policy: delete}}}\n---\n" +
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: gone, namespace: $S}}\n"},
	{name: "webhook-fails-closed", about: "a webhook of the chart that fails closed for deletions of the objects in it", layout: layout{operators: hooking}, types: "crds", objects: true, more: guard("Fail"), helm: 3, fails: true},
	{name: "webhook-fails-closed-4", about: "the same: Helm 4 deletes the webhook first", layout: layout{operators: hooking}, types: "crds", objects: true, more: guard("Fail"), helm: 4},
	{name: "webhook-ignores", about: "the same with failurePolicy Ignore", layout: layout{operators: hooking}, types: "crds", objects: true, more: guard("Ignore")},
	{name: "stateful", about: "a StatefulSet with claims, which stay", layout: layout{noOperator: true, objects: []objects{}}, types: "outside",
		more: "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: $S}, spec: {serviceName: db, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, " +
			"spec: {containers: [{name: db, image: registry.example.com/db, volumeMounts: [{name: data, mountPath: /data}]}]}}, " +
			"volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}\n", want: []string{"claim of StatefulSet/$S/db"}},
	{name: "namespace", about: "a namespace in the chart, with the objects in it", types: "crds", objects: true, layout: layout{objects: []objects{{in: "$X-more"}}},
		more: "{apiVersion: v1, kind: Namespace, metadata: {name: $X-more}}\n"},
	{name: "hook", about: "a hook whose program runs before the deletion, and does nothing", types: "crds", objects: true,
		more: "{apiVersion: batch/v1, kind: Job, metadata: {name: cleanup, namespace: $S, annotations: {helm.sh/hook: pre-delete}}, spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, " +
			"containers: [{name: cleanup, image: registry.example.com/cleanup}]}}}}\n---\n" +
			"{apiVersion: v1, kind: ServiceAccount, metadata: {name: cleanup, namespace: $S, annotations: {helm.sh/hook: pre-delete, helm.sh/hook-weight: '-1'}}}\n",
		want: []string{"NOT KNOWN", "pre-delete hook"}},
	{name: "hook-fails", about: "a hook whose program runs before the deletion, and does not end: Helm deletes nothing", types: "crds", objects: true, fails: true, nothing: true,
		more: "{apiVersion: batch/v1, kind: Job, metadata: {name: cleanup, namespace: $S, annotations: {helm.sh/hook: pre-delete}}, spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, nodeName: none, " +
			"containers: [{name: cleanup, image: registry.example.com/cleanup}]}}}}\n---\n" +
			"{apiVersion: v1, kind: ServiceAccount, metadata: {name: cleanup, namespace: $S, annotations: {helm.sh/hook: pre-delete, helm.sh/hook-weight: '-1'}}}\n",
		want: []string{"NOT KNOWN", "pre-delete hook"}},
	{name: "api", about: "an aggregated API of the chart", layout: layout{operators: []operator{{serves: "none", args: []string{"--serve=api"}, mounts: []string{"cert"}}}, objects: []objects{}, api: "toy"}, types: "outside"},
	{name: "another-release", about: "an object that has another release's annotations by now", layout: layout{noOperator: true, objects: []objects{}, before: []string{
		"kubectl -n $S annotate configmap/taken meta.helm.sh/release-name=other --overwrite"}}, types: "outside", more: "{apiVersion: v1, kind: ConfigMap, metadata: {name: taken, namespace: $S}}\n"},
}
