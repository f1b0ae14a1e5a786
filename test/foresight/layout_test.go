// SPDX-License-Identifier: Apache-2.0

package foresight

import "strings"

// A layout is a way in which operators, their types and their objects can be
// arranged, with a deletion of some of it. In its texts, $X is the name of the copy,
// $S, $A and $B are its namespaces, $GROUP is its API group, and $TOYS and $GADGETS
// are the CustomResourceDefinitions.
type layout struct {
	name string
	// about says what it is, in a line.
	about string
	// operators; none means one with everything as usual. noOperator means none.
	operators  []operator
	noOperator bool
	// gadgets: there is a second type.
	gadgets bool
	// clusterScoped: the types have no namespaces.
	clusterScoped bool
	objects       []objects
	// conversion, webhook and api name the operator that serves a conversion webhook of
	// the types, a webhook that fails closed for changes of their objects, and an
	// aggregated API.
	conversion, webhook, api string
	// before is what happened before the deletion: see copied.prepare.
	before []string
	// plan are the arguments of the deletion; after -f they are the objects of a file.
	plan string
	// possible: there is an order in which nothing is left.
	possible bool
	// kept: --order=safe ends before it destroys the operator, or its rights.
	kept bool
	// alone: it harms the whole cluster.
	alone bool
	// short: it is part of the short form.
	short bool
}

// An operator is a toy operator with what it needs. Its objects are all called
// NAME-$X: service account, roles, bindings, Lease, and what it mounts.
type operator struct {
	name string // toy
	in   string // namespace: $S
	kind string // Deployment, StatefulSet, DaemonSet or Pod: Deployment
	// replicas are 1 unless stated.
	replicas int
	// watch is the namespace that it looks at; empty for all.
	watch string
	// grants are its rights for the types: cluster (a ClusterRole and its binding),
	// namespace (a Role and its binding, in the namespace that it looks at), shared (such
	// a binding, to a ClusterRole that others use), or admin (bound to cluster-admin).
	grants string // cluster
	// serves are the types: toys.
	serves string
	// mounts are config and cert, a ConfigMap and a Secret.
	mounts []string
	args   []string
	// elsewhere: it is not of the chart.
	elsewhere bool
}

// objects are objects of the operators' types, called one, two and so on.
type objects struct {
	of        string // toys
	in        string // namespace
	count     int    // 2
	finalizer string // one that a person sets
	suspend   bool
}

// removesType reports whether a type is in the plan.
func (l *layout) removesType() bool {
	return strings.Contains(l.plan, "$TOYS") || strings.Contains(l.plan, "$GADGETS")
}

// defaults fills in what the table leaves out.
func (l layout) defaults() layout {
	if len(l.operators) == 0 && !l.noOperator {
		l.operators = []operator{{}}
	}
	operators := make([]operator, len(l.operators))
	for i, o := range l.operators {
		o.name, o.in, o.kind, o.grants, o.serves = or(o.name, "toy"), or(o.in, "$S"), or(o.kind, "Deployment"), or(o.grants, "cluster"), or(o.serves, "toys")
		o.replicas = max(o.replicas, 1)
		operators[i] = o
	}
	l.operators = operators
	if l.objects == nil {
		l.objects = []objects{{in: "$A"}}
	}
	all := make([]objects, len(l.objects))
	for i, o := range l.objects {
		o.of = or(o.of, "toys")
		if o.count == 0 {
			o.count = 2
		}
		all[i] = o
	}
	l.objects = all
	return l
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}
