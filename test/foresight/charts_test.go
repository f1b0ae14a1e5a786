// SPDX-License-Identifier: Apache-2.0

package foresight

import "strings"

// hooking is an operator that serves webhooks.
var hooking = []operator{{in: "$S", args: []string{"--serve=admission"}, mounts: []string{"cert"}}}

// guard is a webhook about deletions, with a failurePolicy.
func guard(policy string) string {
	return "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: toy-$X}, webhooks: [{name: toys.$GROUP, " +
		"rules: [{apiGroups: [$GROUP], apiVersions: ['*'], operations: [DELETE], resources: ['*']}], failurePolicy: " + policy + ", sideEffects: None, timeoutSeconds: 3, " +
		"admissionReviewVersions: [v1], clientConfig: $CALL}]}\n---\n"
}

// answering are an operator that serves webhooks alone, and one that serves the objects.
var answering = []operator{{name: "hook", serves: "none", args: []string{"--serve=admission"}, mounts: []string{"cert"}}, {}}

// asImage have an operator call itself as its image, as most do.
var asImage = []string{"--name=toy-operator"}

// cleanup is a hook that runs a program, with its account.
func cleanup(annotations, spec string) string {
	return "{apiVersion: batch/v1, kind: Job, metadata: {name: cleanup, namespace: $S, annotations: {" + annotations + "helm.sh/hook: pre-delete}}, spec: {" + spec + "backoffLimit: 0, " +
		"template: {spec: {restartPolicy: Never, serviceAccountName: cleanup, containers: [{name: cleanup, image: registry.example.com/cleanup}]}}}}\n---\n" +
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: cleanup, namespace: $S, annotations: {" + annotations + "helm.sh/hook: pre-delete, helm.sh/hook-weight: '-1'}}}\n"
}

// seeds are what hooks have made: an object, and another that it may own.
const (
	existing = "{apiVersion: v1, kind: ConfigMap, metadata: {name: seed, namespace: $S}}\n---\n"
	held     = "{apiVersion: v1, kind: ConfigMap, metadata: {name: seed, namespace: $S, finalizers: [example.com/nobody]}}\n---\n"
	seeds    = existing + "{apiVersion: v1, kind: Secret, metadata: {name: seeds, namespace: $S}}\n---\n"
)

// seed is the hook that makes it.
func seed(events, annotations string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: seed, namespace: $S, annotations: {helm.sh/hook: '" + events + "', " + annotations + "}}}\n---\n" +
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: $S}}\n"
}

// madeWebhook is one that an operator has made, whose owner keeper makes.
const (
	madeWebhook = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: keeper-$X}}\n---\n" +
		"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: toy-$X}, webhooks: [{name: toys.$GROUP, " +
		"rules: [{apiGroups: [$GROUP], apiVersions: ['*'], operations: [CREATE], resources: ['*']}], failurePolicy: Fail, sideEffects: None, timeoutSeconds: 3, " +
		"admissionReviewVersions: [v1], clientConfig: $CALL}]}\n---\n"
	ownsWebhook = "own clusterrole/keeper-$X validatingwebhookconfiguration/toy-$X"
)

func keeper(events string) string {
	return "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: keeper-$X, annotations: {helm.sh/hook: '" + events + "'}}}\n"
}

// accounted is a hook that runs a program as an account.
const accounted = "{apiVersion: batch/v1, kind: Job, metadata: {name: accounted, namespace: $S, annotations: {helm.sh/hook: EVENT}}, spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, " +
	"serviceAccountName: web, containers: [{name: web, image: registry.example.com/web}]}}}}\n"

// weights are hooks of both events: of an account and a program with it after the deletion, which are deleted, and of an object at both.
const weights = "{apiVersion: batch/v1, kind: Job, metadata: {name: after, namespace: $S, annotations: {helm.sh/hook: post-delete, helm.sh/hook-weight: '5', helm.sh/hook-delete-policy: 'hook-succeeded,before-hook-creation'}}, " +
	"spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, serviceAccountName: after, containers: [{name: after, image: registry.example.com/after}]}}}}\n---\n" +
	"{apiVersion: v1, kind: ServiceAccount, metadata: {name: after, namespace: $S, annotations: {helm.sh/hook: post-delete, helm.sh/hook-weight: '-3', helm.sh/hook-delete-policy: hook-succeeded}}}\n---\n" +
	"{apiVersion: v1, kind: ConfigMap, metadata: {name: both, namespace: $S, annotations: {helm.sh/hook: 'pre-delete,post-delete'}}}\n---\n" +
	"{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: $S}}\n"

// mounts are hooks before the deletion: a program, and what it needs, of which some stays.
var mounts = strings.NewReplacer("containers:", "volumes: [{name: a, configMap: {name: script}}, {name: b, projected: {sources: [{secret: {name: token}}]}}], containers:").Replace(cleanup("", "")) + "---\n" +
	"{apiVersion: v1, kind: ConfigMap, metadata: {name: script, namespace: $S, annotations: {helm.sh/hook: pre-delete, helm.sh/hook-weight: '-1'}}}\n---\n" +
	"{apiVersion: v1, kind: Secret, metadata: {name: token, namespace: $S, annotations: {helm.sh/hook: pre-delete, helm.sh/hook-weight: '-1', helm.sh/hook-delete-policy: hook-succeeded}}}\n---\n" +
	"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: cleanup, namespace: $S, annotations: {helm.sh/hook: pre-delete, helm.sh/hook-weight: '-1'}}}\n---\n" +
	"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: cleanup, namespace: $S, annotations: {helm.sh/hook: pre-delete, helm.sh/hook-weight: '-1', " +
	"helm.sh/hook-delete-policy: 'before-hook-creation, hook-succeeded'}}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: cleanup}, subjects: [{kind: ServiceAccount, name: cleanup, namespace: $S}]}\n---\n" +
	"{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: $S}}\n"

// chartList are the charts that TestUninstall plays.
var chartList = []chart{
	{name: "plain", about: "an application without an operator", layout: layout{noOperator: true, objects: []objects{}}, types: "outside",
		more: "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: $S}}\n---\n" +
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: $S}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: registry.example.com/web}]}}}}\n"},
	{name: "types-in-templates", about: "an operator with its definition in templates, and objects", objects: true, want: []string{"toy/one, toy/two -n $A: deployment/"}},
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
			"volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}\n", want: []string{"claim of statefulset/db -n $S"}},
	{name: "namespace", about: "a namespace in the chart, with the objects in it", types: "crds", objects: true, layout: layout{objects: []objects{{in: "$X-more"}}},
		more: "{apiVersion: v1, kind: Namespace, metadata: {name: $X-more}}\n"},
	{name: "hook", about: "a hook whose program runs before the deletion, and does nothing", types: "crds", objects: true, guarded: true, more: cleanup("", ""), want: []string{"NOT KNOWN", "pre-delete hook"}},
	{name: "hook-waits", about: "a hook whose program runs before the deletion, and does not end: Helm deletes nothing", types: "crds", objects: true, guarded: true, fails: true, nothing: true,
		more: cleanup("", "suspend: true, "), want: []string{"NOT KNOWN", "pre-delete hook"}},
	{name: "hook-refuses", about: "a hook whose program refuses the uninstallation: Helm deletes nothing", types: "crds", objects: true, guarded: true, fails: true, nothing: true,
		more: cleanup("", "suspend: true, "), during: []string{`-n $S patch job/cleanup --type=merge -p {"spec":{"activeDeadlineSeconds":1}}`}, want: []string{"NOT KNOWN", "pre-delete hook"}},
	{name: "hook-retains", about: "a hook whose program frees the objects, so that what they stand for is retained", types: "crds", objects: true, guarded: true, more: cleanup("", "suspend: true, "),
		during: []string{`-n $A patch toys.$GROUP one two --type=merge -p {"metadata":{"finalizers":null}}`, `-n $S scale deployment/toy-$X --replicas=0`}, want: []string{"NOT KNOWN", "helm get hooks $X -n $S"}},
	{name: "hook-succeeds", about: "a hook whose objects are deleted when its program has succeeded", layout: layout{noOperator: true, objects: []objects{}}, types: "outside",
		more: cleanup("helm.sh/hook-delete-policy: 'before-hook-creation, hook-succeeded', ", "")},
	{name: "hook-replaced", about: "an object of a hook that exists: it is replaced, and what it owns is deleted", layout: layout{noOperator: true, before: []string{"own configmap/seed secret/seeds"}, objects: []objects{}},
		before: seeds, more: seed("pre-install, pre-delete", ""), want: []string{"keeps         configmap/seed -n $S: a hook, which the uninstallation creates"}},
	{name: "hook-kept", about: "an object of a hook that runs at the installation alone, and what it owns", layout: layout{noOperator: true, before: []string{"own configmap/seed secret/seeds"}, objects: []objects{}},
		before: seeds, more: seed("pre-install", ""), want: []string{"what it owns stays with it: secret/seeds -n $S"}},
	{name: "hook-exists", helm: 3, about: "an object of a hook that exists, and that its policy does not have deleted before: Helm deletes nothing", layout: layout{noOperator: true, objects: []objects{}}, types: "outside",
		before: existing, more: seed("pre-install, pre-delete", "helm.sh/hook-delete-policy: hook-succeeded"), fails: true, nothing: true, want: []string{"NO DELETES", "--no-hooks"}},
	{name: "hook-exists-4", helm: 4, about: "the same: Helm 4 applies it, and deletes it when the hook has succeeded", layout: layout{noOperator: true, objects: []objects{}}, types: "outside",
		before: existing, more: seed("pre-install, pre-delete", "helm.sh/hook-delete-policy: hook-succeeded")},
	{name: "hook-exists-after", helm: 3, about: "the same with a hook that runs after the deletion", layout: layout{noOperator: true, objects: []objects{}}, types: "outside",
		before: existing, more: seed("post-delete", "helm.sh/hook-delete-policy: hook-succeeded"), fails: true, want: []string{"FAILS"}},
	{name: "hook-exists-after-4", helm: 4, about: "the same: Helm 4 applies it, and keeps it without such a policy", layout: layout{noOperator: true, objects: []objects{}}, types: "outside",
		before: existing, more: seed("post-delete", "helm.sh/hook-delete-policy: hook-failed")},
	{name: "hook-held", helm: 3, about: "an object of a hook that exists, and is not deleted: Helm deletes nothing", layout: layout{noOperator: true, objects: []objects{}}, types: "outside",
		before: held, more: seed("pre-install, pre-delete", ""), fails: true, want: []string{"STUCK"}},
	{name: "hook-held-4", helm: 4, about: "the same: Helm 4 does not wait for its end", layout: layout{noOperator: true, objects: []objects{}}, types: "outside",
		before: held, more: seed("pre-install, pre-delete", ""), want: []string{"STUCK"}},
	{name: "hook-owns-webhook", about: "an object of a hook that is kept owns a webhook that fails closed, which its operator has made", layout: layout{operators: hooking, before: []string{ownsWebhook}},
		types: "crds", before: madeWebhook, more: keeper("pre-install"), want: []string{"BREAKS        validatingwebhookconfiguration/toy-$X", "what it owns stays with it: validatingwebhookconfiguration/toy-$X"}},
	{name: "hook-replaced-owns-webhook", about: "the same with an object that is replaced, so that the webhook is deleted", layout: layout{operators: hooking, before: []string{ownsWebhook}},
		types: "crds", before: madeWebhook, more: keeper("pre-install, pre-delete"), want: []string{"1 ValidatingWebhookConfiguration"}},
	{name: "operator-makes", about: "an operator that has made a Secret, a ConfigMap by one of its controllers, and a Deployment", layout: layout{objects: []objects{}, before: []string{
		"kubectl -n $S create secret generic password --from-literal=a=b --field-manager=toy-$X", "kubectl -n $S create configmap certificate --from-literal=a=b --field-manager=toy-$X-certificates",
		"kubectl -n $S create deployment made --image=registry.example.com/made --field-manager=toy-$X"}}, types: "crds", want: []string{"deployment/made, secret/password -n $S: written by"}},
	{name: "hook-account", about: "a hook that runs after the deletion as an account of the chart", layout: layout{noOperator: true, objects: []objects{}}, types: "outside", fails: true,
		more: strings.ReplaceAll(accounted, "EVENT", "post-delete") + "---\n{apiVersion: v1, kind: ServiceAccount, metadata: {name: web, namespace: $S}}\n", want: []string{"FAILS"}},
	{name: "hook-namespace", about: "a hook that runs after the deletion in a namespace of the chart", layout: layout{noOperator: true, objects: []objects{}}, types: "outside", fails: true,
		more: "{apiVersion: v1, kind: Namespace, metadata: {name: $X-more}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: after, namespace: $X-more, annotations: {helm.sh/hook: post-delete}}}\n", want: []string{"FAILS"}},
	{name: "hook-definition", about: "a hook after the deletion that is a custom resource, of which the definition is in the chart", layout: layout{noOperator: true, objects: []objects{}}, fails: true,
		more: "{apiVersion: $GROUP/v1, kind: Toy, metadata: {name: after, namespace: $S, annotations: {helm.sh/hook: post-delete}}}\n", want: []string{"FAILS"}},
	{name: "hook-account-before", about: "a hook that runs before the deletion as an account that does not exist", layout: layout{noOperator: true, objects: []objects{}}, types: "outside", fails: true, nothing: true,
		more: strings.ReplaceAll(accounted, "EVENT", "pre-delete") + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: $S}}\n", want: []string{"NO DELETES"}},
	{name: "hook-again", about: "the release whose uninstallation has failed, once more", layout: layout{noOperator: true, objects: []objects{}}, types: "outside", again: true, more: cleanup("", "suspend: true, "),
		during: []string{"-n $S get job/cleanup"}},
	{name: "hook-unnamed", about: "a hook with a generateName, which Helm cannot delete: it deletes nothing", layout: layout{noOperator: true, objects: []objects{}}, types: "outside", fails: true, nothing: true,
		more: strings.Replace(seed("pre-delete", ""), "name: seed", "generateName: seed-", 1), want: []string{"NO DELETES"}},
	{name: "hook-empty-policy", helm: 3, about: "a hook with an empty policy, whose object exists: Helm deletes nothing", layout: layout{noOperator: true, objects: []objects{}}, types: "outside", fails: true, nothing: true,
		before: existing, more: seed("pre-install, pre-delete", "helm.sh/hook-delete-policy: ''"), want: []string{"NO DELETES", "--no-hooks"}},
	{name: "hook-empty-policy-4", helm: 4, about: "the same: Helm 4 applies it", layout: layout{noOperator: true, objects: []objects{}}, types: "outside",
		before: existing, more: seed("pre-install, pre-delete", "helm.sh/hook-delete-policy: ''")},
	{name: "upgrade-failed", about: "what an earlier revision had, and a failed upgrade has not deleted", layout: layout{noOperator: true, objects: []objects{}}, types: "outside",
		before: "{apiVersion: v1, kind: ConfigMap, metadata: {name: old, namespace: $S, labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: $X, meta.helm.sh/release-namespace: $S}}}\n---\n",
		more:   "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: $S}}\n", want: []string{"leaves        configmap/old -n $S: its annotations name the Helm release $S/$X"}},
	{name: "hook-weights", about: "hooks before and after the deletion, by weights, of which some delete their objects", layout: layout{noOperator: true, objects: []objects{}}, types: "outside", more: cleanup("", "") + "---\n" + weights},
	{name: "hook-needs", about: "a hook before the deletion with what its program needs, of which some stays", layout: layout{noOperator: true, objects: []objects{}}, types: "outside", more: mounts,
		want: []string{"keeps         serviceaccount/cleanup, role/cleanup, configmap/script, job/cleanup -n $S: a hook, which the uninstallation creates"}},
	{name: "controlled", about: "an object that another one controls", layout: layout{objects: []objects{{in: "$S"}}, before: []string{"control toys.$GROUP/one toys.$GROUP/two"}}, objects: true, want: []string{"STUCK", "--prepare"}},
	{name: "lists-policies", about: "lists with annotations, and with objects that have some: Helm looks at those of the list alone", layout: layout{noOperator: true, objects: []objects{}}, types: "outside",
		more: "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, namespace: $S, annotations: {helm.sh/resource-policy: keep}}}, " +
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: hook, namespace: $S, annotations: {helm.sh/hook: post-install}}}]}\n---\n" +
			"{apiVersion: v1, kind: List, metadata: {annotations: {helm.sh/resource-policy: keep}}, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: list, namespace: $S}}]}\n", want: []string{"keeps         configmap/list -n $S"}},
	{name: "kept-goes", about: "an object that is kept, and goes with its namespace", layout: layout{noOperator: true, objects: []objects{}}, types: "outside",
		more: "{apiVersion: v1, kind: Namespace, metadata: {name: $X-more}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, namespace: $X-more, annotations: {helm.sh/resource-policy: keep}}}\n",
		want: []string{"BREAKS        configmap/kept -n $X-more: the tool keeps it"}},
	{name: "kept-with-definition", about: "an object that is kept, and gets stuck with its definition", layout: layout{objects: []objects{}}, guarded: true,
		more: "{apiVersion: $GROUP/v1, kind: Toy, metadata: {name: own, namespace: $A, annotations: {helm.sh/resource-policy: keep}}}\n", want: []string{"STUCK", "BREAKS        toy/own -n $A: the tool keeps it"}},
	{name: "hook-custom", helm: 3, about: "a hook that is a custom resource, on which its operator acts", types: "crds", objects: true, guarded: true,
		more: "{apiVersion: $GROUP/v1, kind: Toy, metadata: {name: retain, namespace: $A, annotations: {helm.sh/hook: pre-delete, helm.sh/hook-delete-policy: hook-succeeded}}}\n", want: []string{"NOT KNOWN", "pre-delete hook"}},
	{name: "held-beside", about: "an object of which the operator removes the finalizer, and one with a person's", layout: layout{objects: []objects{{in: "$A"}, {in: "$B", finalizer: "example.com/hold"}}}, objects: true, partly: true, want: []string{"STUCK", "--prepare"}},
	{name: "owned-held", about: "an object of which the operator removes the finalizer owns one with a person's", layout: layout{objects: []objects{{in: "$S"}}, before: []string{"own toys.$GROUP/one toys.$GROUP/held"}}, objects: true, partly: true,
		more: "{apiVersion: $GROUP/v1, kind: Toy, metadata: {name: held, namespace: $S, finalizers: [example.com/hold]}}\n", want: []string{"STUCK"}},
	{name: "all-kept", about: "the definition and an object are kept by their annotations, and a user has made others", types: "kept",
		more: "{apiVersion: $GROUP/v1, kind: Toy, metadata: {name: own, namespace: $A, annotations: {helm.sh/resource-policy: keep}}}\n", want: []string{"HANGS LATER", "keeps         toy/own -n $A"}},
	{name: "another-serves", about: "another operator, which is not of the chart, serves the objects, too", layout: layout{operators: []operator{{args: asImage}, {name: "other", in: "$B", elsewhere: true, args: asImage}}}, types: "crds", objects: true, guarded: true, want: []string{"MIGHT STICK   toy/one, toy/two -n $A"}},
	{name: "operator-down", about: "the operator is scaled to 0", layout: layout{before: []string{"scale toy 0"}}, types: "crds", objects: true, guarded: true, want: []string{"STUCK"}},
	{name: "going-already", about: "an object is being deleted already, and its operator is scaled to 0", layout: layout{before: []string{"scale toy 0", "kubectl -n $A delete toys.$GROUP one --wait=false"}}, types: "crds", objects: true, guarded: true, want: []string{"STUCK"}},
	{name: "held", about: "a person's finalizer is on an object of the chart", layout: layout{objects: []objects{{in: "$A", finalizer: "example.com/guard"}}}, types: "crds", objects: true, guarded: true, want: []string{"STUCK"}},
	{name: "pods-webhook", helm: 3, about: "a webhook of the chart that fails closed for deletions of its pods", layout: layout{operators: hooking, objects: []objects{}}, types: "crds", more: strings.NewReplacer("[$GROUP]", "['']", "resources: ['*']", "resources: [pods]").Replace(guard("Fail"))},
	{name: "pods-webhook-4", helm: 4, about: "the same: Helm 4 deletes the webhook first", layout: layout{operators: hooking, objects: []objects{}}, types: "crds", more: strings.NewReplacer("[$GROUP]", "['']", "resources: ['*']", "resources: [pods]").Replace(guard("Fail"))},
	{name: "conversion", about: "the definition is in crds/, and its conversion webhook is the operator", layout: layout{operators: []operator{{args: []string{"--serve=conversion"}, mounts: []string{"cert"}}}, conversion: "toy"}, types: "outside", want: []string{"BREAKS"}},
	{name: "lists", about: "a list, an object of a namespace that does not exist any more, and one that is gone", layout: layout{noOperator: true, objects: []objects{}, before: []string{"kubectl -n $S delete configmap/gone"}}, types: "outside",
		more: "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: $S}}, {apiVersion: v1, kind: Secret, metadata: {name: two, namespace: $S}}]}\n---\n" +
			"{apiVersion: v1, kind: ConfigMapList, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: three, namespace: $S}}]}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: gone, namespace: $S}}\n", want: []string{"gone already"}},
	{name: "subchart", about: "a chart in the chart, with a hook of its own, and objects of another release in the namespace", layout: layout{noOperator: true, objects: []objects{}}, types: "outside",
		before: existing + "{apiVersion: v1, kind: ConfigMap, metadata: {name: other-admin, namespace: $S, labels: {app.kubernetes.io/managed-by: Helm, app.kubernetes.io/instance: other}, " +
			"annotations: {meta.helm.sh/release-name: other, meta.helm.sh/release-namespace: $S}}}\n---\n",
		more: "{apiVersion: v1, kind: ConfigMap, metadata: {name: top, namespace: $S}}\n", sub: seed("pre-install, post-delete", ""), want: []string{"keeps         configmap/seed -n $S: a hook, which the uninstallation creates"}},
	{name: "own-namespace", about: "the release's own namespace is in the chart", layout: layout{noOperator: true, objects: []objects{}}, types: "outside", before: "{apiVersion: v1, kind: Namespace, metadata: {name: $S, labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: $X, meta.helm.sh/release-namespace: $S}}}\n---\n",
		more: "{apiVersion: v1, kind: Namespace, metadata: {name: $S}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: $S}}\n"},
	{name: "two-of-one-image", about: "two Deployments of one image, of which one serves the objects", layout: layout{operators: []operator{{}, {name: "web", serves: "none"}}}, types: "crds", objects: true, want: []string{"STUCK", "--prepare"}},
	{name: "two-that-serve", about: "two Deployments of one image, which both serve the objects", layout: layout{operators: []operator{{}, {name: "web"}}}, types: "crds", objects: true, want: []string{"STUCK", "--prepare"}},
	{name: "webhook-without-rights", about: "a Deployment for the webhook, without rights to the type", layout: layout{operators: answering}, types: "crds", objects: true, more: guard("Fail"), helm: 3, fails: true, want: []string{"STUCK", "--prepare"}},
	{name: "webhook-without-rights-4", about: "the same: Helm 4 deletes the webhook first", layout: layout{operators: answering}, types: "crds", objects: true, more: guard("Fail"), helm: 4, want: []string{"STUCK", "--prepare"}},
	{name: "api", about: "an aggregated API of the chart", layout: layout{operators: []operator{{serves: "none", args: []string{"--serve=api"}, mounts: []string{"cert"}}}, objects: []objects{}, api: "toy"}, types: "outside"},
	{name: "another-release", about: "an object that has another release's annotations by now", layout: layout{noOperator: true, objects: []objects{}, before: []string{
		"kubectl -n $S annotate configmap/taken meta.helm.sh/release-name=other --overwrite"}}, types: "outside", more: "{apiVersion: v1, kind: ConfigMap, metadata: {name: taken, namespace: $S}}\n"},
}
