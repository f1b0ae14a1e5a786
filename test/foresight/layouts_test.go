// SPDX-License-Identifier: Apache-2.0

package foresight

// What many layouts have in common.
var (
	both     = []objects{{in: "$A"}, {in: "$B"}}
	own      = []objects{{in: "$S"}}
	inOwn    = []operator{{watch: "$S", grants: "namespace"}}
	webhook  = []operator{{args: []string{"--serve=admission"}, mounts: []string{"cert"}}}
	backends = []operator{{}, {name: "hook", serves: "none", args: []string{"--serve=admission"}, mounts: []string{"cert"}}}
	tenants  = []operator{{in: "$A", watch: "$A", grants: "namespace"}, {in: "$B", watch: "$B", grants: "namespace"}}
	shared   = []operator{{in: "$A", watch: "$A", grants: "shared"}, {in: "$B", watch: "$B", grants: "shared"}}
	twoTypes = []operator{{}, {name: "gadget", serves: "gadgets"}}
	oneEach  = []objects{{in: "$A"}, {of: "gadgets", in: "$A"}}
)

// layouts are all layouts. Objects are in $A, and one operator for all namespaces is
// in $S, unless something else is stated.
var layouts = []layout{
	// The operator is not in the plan.
	{name: "objects", about: "objects alone; their operator works", plan: "-n $A toys.$GROUP --all", possible: true, short: true},
	{name: "definition", about: "the type, with objects in two namespaces", objects: both, plan: "$TOYS", possible: true},
	{name: "tenant-namespace", about: "a namespace with objects", plan: "namespace/$A", possible: true, short: true},
	{name: "cluster-scoped", about: "objects without a namespace", clusterScoped: true, objects: []objects{{}}, plan: "toys.$GROUP --all", possible: true},
	{name: "foreground", about: "objects, in the foreground", plan: "-n $A toys.$GROUP --all --cascade=foreground", possible: true},
	{name: "second-type", about: "one type of two, served by two operators", operators: twoTypes, gadgets: true, objects: oneEach, plan: "$TOYS", possible: true},
	{name: "one-operator-two-types", about: "one type of two that one operator serves", operators: []operator{{serves: "toys,gadgets"}}, gadgets: true, objects: oneEach, plan: "$GADGETS", possible: true},
	{name: "stateful-operator", about: "objects of an operator in a StatefulSet", operators: []operator{{kind: "StatefulSet"}}, plan: "-n $A toys.$GROUP --all", possible: true},

	// The operator is in the plan.
	{name: "operator-namespace", about: "the namespace with the operator, its rights and its objects", operators: inOwn, objects: own, plan: "namespace/$S", possible: true, short: true},
	{name: "operator-namespace-and-type", about: "the operator's namespace with its rights and objects, and the type", operators: inOwn, objects: own, plan: "namespace/$S $TOYS", possible: true},
	{name: "operator-namespace-alone", about: "the operator's namespace; objects elsewhere stay", plan: "namespace/$S", possible: true},
	{name: "both-namespaces", about: "the operator's namespace and that of the objects", plan: "namespace/$S namespace/$A", possible: true},
	{name: "everything", about: "a whole installation by its file, and the objects", objects: both,
		plan: "-f namespace/$S $TOYS clusterrole/toy-$X clusterrolebinding/toy-$X serviceaccount/$S/toy-$X deployment/$S/toy-$X toy/$A/one toy/$A/two toy/$B/one toy/$B/two", possible: true},
	{name: "deployment-first", about: "the Deployment, then the objects beside it", objects: own, plan: "-n $S deployment/toy-$X toys.$GROUP/one toys.$GROUP/two", possible: true, short: true},
	{name: "deployment-last", about: "the objects, then the Deployment", objects: own, plan: "-n $S toys.$GROUP/one toys.$GROUP/two deployment/toy-$X", possible: true},
	{name: "deployment-quick", about: "the Deployment first, but the operator works to its end and is quick", operators: []operator{{args: []string{"--linger", "--cleanup=0s"}}},
		objects: own, plan: "-n $S deployment/toy-$X toys.$GROUP/one toys.$GROUP/two", possible: true},
	{name: "deployment-slow", about: "the Deployment last, and the operator takes 20 seconds", operators: []operator{{args: []string{"--cleanup=20s"}}},
		objects: own, plan: "-n $S toys.$GROUP/one toys.$GROUP/two deployment/toy-$X", possible: true},
	{name: "deployment-and-type", about: "the Deployment and the type", plan: "-n $S deployment/toy-$X $TOYS", possible: true},
	{name: "deployment-orphaned", about: "the Deployment and objects, orphaning: its pods keep running", objects: own, plan: "-n $S deployment/toy-$X toys.$GROUP/one toys.$GROUP/two --cascade=orphan", possible: true},
	{name: "deployment-foreground", about: "the Deployment and objects, in the foreground", objects: own, plan: "-n $S deployment/toy-$X toys.$GROUP/one toys.$GROUP/two --cascade=foreground", possible: true},
	{name: "statefulset", about: "an operator in a StatefulSet, and objects", operators: []operator{{kind: "StatefulSet"}}, objects: own, plan: "-n $S statefulset/toy-$X toys.$GROUP/one", possible: true},
	{name: "daemonset", about: "an operator in a DaemonSet, and objects", operators: []operator{{kind: "DaemonSet"}}, objects: own, plan: "-n $S daemonset/toy-$X toys.$GROUP/one", possible: true},
	{name: "bare-pod", about: "an operator in a pod without owner, and objects", operators: []operator{{kind: "Pod"}}, objects: own, plan: "-n $S pod/toy-$X toys.$GROUP/one", possible: true},
	{name: "pods", about: "the operator's pods, which are recreated, and objects", objects: own, plan: "-f pods/$S/app=toy-$X toy/$S/one toy/$S/two", possible: true},
	{name: "two-replicas", about: "one of two pods of the operator, and objects", operators: []operator{{replicas: 2}}, objects: own, plan: "-f leader/$S/toy-$X toy/$S/one toy/$S/two", possible: true},
	{name: "replicaset", about: "the operator's ReplicaSet, which is recreated, and objects", objects: own, plan: "-f replicasets/$S/app=toy-$X toy/$S/one", possible: true},

	// What the operator needs is in the plan.
	{name: "account", about: "its service account, then objects", objects: own, plan: "-n $S serviceaccount/toy-$X toys.$GROUP/one toys.$GROUP/two", possible: true, short: true},
	{name: "account-slow", about: "its service account, then objects; the operator takes 20 seconds", operators: []operator{{args: []string{"--cleanup=20s"}}}, objects: own, plan: "-n $S serviceaccount/toy-$X toys.$GROUP/one toys.$GROUP/two", possible: true},
	{name: "cluster-role", about: "its ClusterRole, then the type", plan: "clusterrole/toy-$X $TOYS", possible: true},
	{name: "cluster-binding", about: "its ClusterRoleBinding, then the type", plan: "clusterrolebinding/toy-$X $TOYS", possible: true},
	{name: "role-and-binding", about: "its Role and RoleBinding, then objects", operators: inOwn, objects: own, plan: "-n $S role/toy-$X rolebinding/toy-$X toys.$GROUP/one toys.$GROUP/two", possible: true},
	{name: "binding-in-tenant", about: "a namespace with objects and with the binding that lets the operator work there", operators: []operator{{watch: "$A", grants: "namespace"}}, plan: "namespace/$A", possible: true},
	{name: "shared-role", about: "a ClusterRole that two operators are bound to, and the objects of both", operators: shared, objects: both,
		plan: "-f clusterrole/shared-$X toy/$A/one toy/$A/two toy/$B/one toy/$B/two", possible: true},
	{name: "shared-role-one-binding", about: "one of two bindings to a shared ClusterRole, and the objects of the other", operators: shared, objects: both,
		plan: "-f rolebinding/$B/toy-$X toy/$A/one toy/$A/two", possible: true},
	{name: "lease", about: "its Lease, which it recreates, and objects", objects: own, plan: "-n $S lease/toy-$X toys.$GROUP/one", possible: true},
	{name: "config", about: "a ConfigMap that it mounts, and objects", operators: []operator{{mounts: []string{"config"}}}, objects: own, plan: "-n $S configmap/toy-$X toys.$GROUP/one", possible: true},
	{name: "secret", about: "a Secret that it mounts, and objects", operators: []operator{{mounts: []string{"cert"}}}, objects: own, plan: "-n $S secret/toy-$X toys.$GROUP/one", possible: true},
	{name: "secret-and-pods", about: "a Secret that it mounts and the operator's pods, so that the next cannot start, and objects", operators: []operator{{mounts: []string{"cert"}}}, objects: own,
		plan: "-f secret/$S/toy-$X pods/$S/app=toy-$X toy/$S/one toy/$S/two", possible: true},

	// Several operators.
	{name: "tenant-operators", about: "one of two operators of a name, with its namespace and objects", operators: tenants, objects: both, plan: "namespace/$A", possible: true},
	{name: "tenant-operators-both", about: "both, with the type", operators: tenants, objects: both, plan: "namespace/$A namespace/$B $TOYS", possible: true},
	{name: "other-tenant", about: "the operator of one namespace, and the objects of the other", operators: tenants, objects: both,
		plan: "-f deployment/$A/toy-$X toy/$B/one toy/$B/two", possible: true},
	{name: "other-operator", about: "the operator of one type, and the objects of the other", operators: twoTypes, gadgets: true, objects: oneEach,
		plan: "-f deployment/$S/gadget-$X toy/$A/one toy/$A/two", possible: true},

	// Nobody takes the finalizer off.
	{name: "scaled-down", about: "objects of an operator scaled to 0", before: []string{"scale toy 0"}, plan: "-n $A toys.$GROUP --all", short: true},
	{name: "scaled-down-type", about: "the type of an operator scaled to 0", before: []string{"scale toy 0"}, plan: "$TOYS"},
	{name: "scaled-down-all", about: "an operator scaled to 0, with its namespace and its objects", operators: inOwn, objects: own, before: []string{"scale toy 0"}, plan: "namespace/$S", kept: true},
	{name: "crash-looping", about: "objects of an operator whose pod does not get ready", before: []string{"crash toy"}, plan: "-n $A toys.$GROUP --all"},
	{name: "crash-looping-namespace", about: "a namespace with objects of an operator whose pod does not get ready",
		before: []string{"crash toy"}, plan: "namespace/$A"},
	{name: "uninstalled", about: "objects whose operator's Deployment was deleted before", before: []string{"kubectl -n $S delete deployment/toy-$X"}, plan: "-n $A toys.$GROUP --all"},
	{name: "no-trace", about: "objects whose operator's namespace and rights were deleted before",
		before: []string{"kubectl delete namespace/$S clusterrole/toy-$X clusterrolebinding/toy-$X"}, plan: "namespace/$A"},
	{name: "unbound", about: "objects of an operator whose binding was deleted before", before: []string{"kubectl delete clusterrolebinding/toy-$X"}, plan: "-n $A toys.$GROUP --all"},
	{name: "no-account", about: "objects of an operator whose account was deleted before", before: []string{"kubectl -n $S delete serviceaccount/toy-$X", "kubectl -n $S delete pods --all"}, plan: "-n $A toys.$GROUP --all"},
	{name: "person", about: "a finalizer that a person set; there is no operator", noOperator: true, objects: []objects{{in: "$A", finalizer: "example.com/hold"}}, plan: "-n $A toys.$GROUP --all"},
	{name: "person-beside", about: "a person's finalizer beside that of an operator that works", objects: []objects{{in: "$A", finalizer: "example.com/hold"}}, plan: "-n $A toys.$GROUP --all"},
	{name: "person-for-operator", about: "a person set the operator's finalizer", operators: []operator{{args: []string{"--adopt=false"}}},
		objects: []objects{{in: "$A", finalizer: "$GROUP/cleanup"}}, plan: "-n $A toys.$GROUP --all", possible: true},
	{name: "suspended", about: "objects that the operator leaves alone, as they say", objects: []objects{{in: "$A", suspend: true, finalizer: "$GROUP/cleanup"}}, plan: "-n $A toys.$GROUP --all"},
	{name: "suspended-namespace", about: "the operator's namespace with objects that it leaves alone, as they say", operators: inOwn, objects: []objects{{in: "$S", suspend: true, finalizer: "$GROUP/cleanup"}}, plan: "namespace/$S", kept: true},
	{name: "person-beside-namespace", about: "the operator's namespace with objects that have a person's finalizer, too", operators: inOwn, objects: []objects{{in: "$S", finalizer: "example.com/hold"}}, plan: "namespace/$S", kept: true},

	// Only managedFields name the operator.
	{name: "unlikely-name", about: "objects of an operator with rights to everything, without a Lease", operators: []operator{{name: "robot", grants: "admin", args: []string{"--leader-elect=false"}}},
		plan: "-n $A toys.$GROUP --all", possible: true},
	{name: "unlikely-name-deployment", about: "its Deployment, then the objects", operators: []operator{{name: "robot", grants: "admin", args: []string{"--leader-elect=false"}}},
		objects: own, plan: "-n $S deployment/robot-$X toys.$GROUP/one toys.$GROUP/two", possible: true},

	// Owner references between objects and the workload.
	{name: "owned-by-workload", about: "the Deployment, which owns the objects", objects: own, before: []string{"own deployments.apps/toy-$X toys.$GROUP/one", "own deployments.apps/toy-$X toys.$GROUP/two"},
		plan: "-n $S deployment/toy-$X", possible: true},
	{name: "owned-by-workload-foreground", about: "the Deployment, which owns the objects, in the foreground", objects: own, before: []string{"own deployments.apps/toy-$X toys.$GROUP/one", "own deployments.apps/toy-$X toys.$GROUP/two"},
		plan: "-n $S deployment/toy-$X --cascade=foreground", possible: true},
	{name: "owns-workload", about: "an object that owns its operator's Deployment", objects: own, before: []string{"own toys.$GROUP/one deployments.apps/toy-$X"}, plan: "-n $S toys.$GROUP/one", possible: true},
	{name: "owns-workload-foreground", about: "an object that owns its operator's Deployment, in the foreground", objects: own, before: []string{"own toys.$GROUP/one deployments.apps/toy-$X"}, plan: "-n $S toys.$GROUP/one --cascade=foreground"},

	// Webhooks that fail closed.
	{name: "webhook-stays", about: "the operator's namespace, with its objects and the webhook's backend; the webhook stays", operators: webhook, webhook: "toy", objects: own, plan: "namespace/$S", possible: true, short: true},
	{name: "webhook-goes", about: "the operator's namespace, with its objects and the webhook's backend, and the webhook", operators: webhook, webhook: "toy", objects: own, plan: "namespace/$S validatingwebhookconfiguration/toy-$X", possible: true},
	{name: "webhook-apart", about: "the backend of a webhook in its own Deployment, and objects", operators: backends, webhook: "hook", objects: own, plan: "-n $S deployment/hook-$X toys.$GROUP/one", possible: true},
	{name: "webhook-service", about: "the Service of a webhook, and objects", operators: webhook, webhook: "toy", objects: own, plan: "-n $S service/toy-$X toys.$GROUP/one", possible: true},
	{name: "webhook-dead", about: "objects, while the backend of a webhook is scaled to 0", operators: backends, webhook: "hook", before: []string{"scale hook 0"}, plan: "-n $A toys.$GROUP --all"},
	{name: "webhook-dead-goes", about: "a webhook whose backend is scaled to 0, and objects", operators: backends, webhook: "hook", before: []string{"scale hook 0"},
		plan: "-f validatingwebhookconfiguration/hook-$X toy/$A/one toy/$A/two", possible: true},

	// What harms the whole cluster.
	{name: "api-stays", about: "the namespace of an aggregated API's backend; the APIService stays", operators: []operator{{serves: "none", args: []string{"--serve=api"}, mounts: []string{"cert"}}},
		objects: []objects{}, api: "toy", plan: "namespace/$S", alone: true},
	{name: "api-goes", about: "the namespace of an aggregated API's backend, and the APIService", operators: []operator{{serves: "none", args: []string{"--serve=api"}, mounts: []string{"cert"}}},
		objects: []objects{}, api: "toy", plan: "namespace/$S apiservice/v1.extension.$GROUP", possible: true, alone: true},
	{name: "api-dead", about: "another namespace while the backend of an aggregated API is scaled to 0", operators: []operator{{}, {name: "api", serves: "none", args: []string{"--serve=api"}, mounts: []string{"cert"}}},
		api: "api", before: []string{"scale api 0"}, plan: "namespace/$A", alone: true},
	{name: "conversion-type", about: "the operator's namespace, which converts the type, and the type", operators: []operator{{args: []string{"--serve=conversion", "--version=v2"}, mounts: []string{"cert"}}},
		conversion: "toy", plan: "namespace/$S $TOYS", possible: true, alone: true},
	{name: "conversion-namespaces", about: "the operator's namespace, which converts the type, and the namespace of the objects", operators: []operator{{args: []string{"--serve=conversion", "--version=v2"}, mounts: []string{"cert"}}},
		conversion: "toy", plan: "namespace/$S namespace/$A", possible: true, alone: true},
}
