// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ugliness is how much of a cluster is not as it should be.
type ugliness struct {
	// types is how many types are defined, with a few objects each.
	types int
	// wrong is how many owner references are wrong.
	wrong int
	// terminating is how many objects are to be in deletion for ever, of as many
	// causes as there are stuckKinds.
	terminating int
	// garbage is how many objects have only owners that are gone, of as many kinds as there are in garbageKinds.
	garbage int
	// namespaces is how many there are for all that.
	namespaces int
}

// spoil makes a cluster as ugly as those that have been in use for years.
func (c *creator) spoil(ctx context.Context, u ugliness) error {
	if u.types+u.wrong+u.terminating+u.garbage == 0 {
		return nil
	}
	for _, step := range []func(context.Context, ugliness) error{c.define, c.wrong, c.operators, c.stuck, c.garbage} {
		if err := step(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// each calls a function with the numbers up to n, several at a time.
func each(ctx context.Context, n int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// namespaceOf spreads objects over the namespaces of the applications.
func (u *ugliness) namespaceOf(i int) string { return fmt.Sprintf("team-%05d", i%u.namespaces) }

// groupOf is the API group of a defined type: several types share one.
func groupOf(i int) string { return fmt.Sprintf("product-%02d.example.com", i/3) }

// widgets is the path of the objects of a defined type.
func widgets(i int, namespace string) string {
	return fmt.Sprintf("/apis/%s/v1/namespaces/%s/widget%03ds", groupOf(i), namespace, i)
}

// widget is an object of a defined type.
func widget(i int, meta string) string {
	return fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Widget%03d",%s,"spec":{"size":3}}`, groupOf(i), i, meta)
}

// define defines the types, waits until they are served, and makes some objects of each.
func (c *creator) define(ctx context.Context, u ugliness) error {
	for i := range u.types {
		plural := fmt.Sprintf("widget%03ds", i)
		body := fmt.Sprintf(`{"metadata":{"name":"%s.%s"},"spec":{"group":%q,"scope":"Namespaced","names":{"plural":%q,"kind":"Widget%03d"},`+
			`"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`,
			plural, groupOf(i), groupOf(i), plural, i)
		if _, err := c.create(ctx, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body); err != nil {
			return err
		}
	}
	return each(ctx, u.types*5, func(ctx context.Context, k int) error {
		i := k % u.types
		err := c.createServed(ctx, widgets(i, u.namespaceOf(k)), widget(i, meta(fmt.Sprintf("widget-%05d", k), "")))
		return err
	})
}

// wrong makes objects with owner references of every kind of wrong.
func (c *creator) wrong(ctx context.Context, u ugliness) error {
	return each(ctx, u.wrong, func(ctx context.Context, i int) error {
		namespace, name := u.namespaceOf(i), fmt.Sprintf("wrong-%05d", i)
		absent := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		path, owner := "/api/v1/namespaces/"+namespace+"/configmaps", ""
		switch i % 6 {
		case 0:
			owner = ownedBy("apps/v1", "Deployment", "gone", absent)
		case 1: // somebody else has its name now
			owner = ownedBy("apps/v1", "Deployment", fmt.Sprintf("app-%08d", i%u.namespaces*100), absent)
		case 2: // it is in another namespace
			uid, err := c.create(ctx, "/api/v1/namespaces/"+u.namespaceOf(i+1)+"/configmaps", `{`+meta("owner-of-"+name, "")+`}`)
			if err != nil {
				return err
			}
			owner = ownedBy("v1", "ConfigMap", "owner-of-"+name, uid)
		case 3: // it is of another kind
			uid, err := c.create(ctx, path, `{`+meta("owner-of-"+name, "")+`}`)
			if err != nil {
				return err
			}
			owner = ownedBy("v1", "Secret", "owner-of-"+name, uid)
		case 4: // nobody serves its type
			owner = ownedBy("forgotten.example.com/v1", "Forgotten", name, absent)
		case 5: // it has a namespace, and the dependent has none
			path, owner = "/apis/rbac.authorization.k8s.io/v1/clusterroles", ownedBy("v1", "ConfigMap", "gone", absent)
		}
		_, err := c.create(ctx, path, `{`+meta(name, owner)+`}`)
		return err
	})
}

// operators makes the workloads that are to serve finalizers, and what such have beside
// them: accounts, rights, leases. None of them runs.
func (c *creator) operators(ctx context.Context, u ugliness) error {
	if u.types == 0 {
		return nil
	}
	if _, err := c.create(ctx, "/api/v1/namespaces", `{"metadata":{"name":"operators"}}`); err != nil {
		return err
	}
	return each(ctx, (u.types+2)/3, func(ctx context.Context, i int) error {
		name, group := fmt.Sprintf("product-%02d-controller", i), groupOf(3*i)
		template := `"selector":{"matchLabels":{"app":"` + name + `"}},"template":{"metadata":{"labels":{"app":"` + name + `"}},"spec":{"serviceAccountName":"` + name + `",` + podSpec[1:] + `}`
		for _, o := range []struct{ path, body string }{
			{"/api/v1/namespaces/operators/serviceaccounts", `{` + meta(name, "") + `}`},
			{"/apis/rbac.authorization.k8s.io/v1/clusterroles", `{` + meta(name, "") + `,"rules":[{"apiGroups":["` + group + `"],"resources":["*"],"verbs":["*"]},{"apiGroups":[""],"resources":["configmaps","secrets"],"verbs":["get","update"]}]}`},
			{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{` + meta(name, "") + `,"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"` + name + `"},"subjects":[{"kind":"ServiceAccount","namespace":"operators","name":"` + name + `"}]}`},
			{"/apis/apps/v1/namespaces/operators/deployments", fmt.Sprintf(`{%s,"spec":{"replicas":%d,%s}}`, meta(name, ""), i%2, template)},
			{"/apis/coordination.k8s.io/v1/namespaces/operators/leases", `{` + meta(name+"."+group, "") + `,"spec":{"holderIdentity":"` + name + `_x","leaseDurationSeconds":15,"renewTime":"2024-01-01T00:00:00.000000Z"}}`},
		} {
			if _, err := c.create(ctx, o.path, o.body); err != nil {
				return err
			}
		}
		return nil
	})
}

// stuckKind is one way for an object to stay in deletion for ever: how the i-th of
// them is made and deleted.
type stuckKind func(ctx context.Context, c *creator, u *ugliness, i int) error

// finalized makes an object with a finalizer in the i-th namespace, and deletes it.
func finalized(group, resource, finalizer, more string) stuckKind {
	return func(ctx context.Context, c *creator, u *ugliness, i int) error {
		path := group + "/namespaces/" + u.namespaceOf(i) + "/" + resource
		return c.createDeleted(ctx, path, withFinalizer(fmt.Sprintf("stuck-%s-%06d", shortName(finalizer), i), finalizer, "", more), "")
	}
}

// global is finalized for types without namespaces.
func global(group, resource, finalizer, more string) stuckKind {
	return func(ctx context.Context, c *creator, _ *ugliness, i int) error {
		return c.createDeleted(ctx, group+"/"+resource, withFinalizer(fmt.Sprintf("stuck-%s-%06d", shortName(finalizer), i), finalizer, "", more), "")
	}
}

// custom is finalized for the objects of a defined type.
func custom(kind int, finalizer string) stuckKind {
	return func(ctx context.Context, c *creator, u *ugliness, i int) error {
		k := kind % u.types
		name := fmt.Sprintf("stuck-%s-%06d", shortName(finalizer), i)
		return c.createDeleted(ctx, widgets(k, u.namespaceOf(i)), widget(k, metaOfStuck(name, finalizer, "")), "")
	}
}

// shortName makes a part of a name of a finalizer.
func shortName(finalizer string) string {
	short := strings.Map(func(r rune) rune {
		if r == '/' || r == '.' {
			return '-'
		}
		return r
	}, finalizer)
	return strings.ToLower(short)
}

func metaOfStuck(name, finalizer, owner string) string {
	return strings.TrimSuffix(meta(name, owner), "}") + `,"finalizers":["` + finalizer + `"]}`
}

func withFinalizer(name, finalizer, owner, more string) string {
	return `{` + metaOfStuck(name, finalizer, owner) + more + `}`
}

const (
	core    = "/api/v1"
	storage = "/apis/storage.k8s.io/v1"

	claimSpec  = `,"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"fast","resources":{"requests":{"storage":"1Gi"}}}`
	volumeSpec = `,"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"fast","capacity":{"storage":"1Gi"},"csi":{"driver":"csi.example.com","volumeHandle":"x"}}`
	attachment = `,"spec":{"attacher":"csi.example.com","nodeName":"gone","source":{"persistentVolumeName":"pv"}}`
	port       = `,"spec":{"type":"LoadBalancer","ports":[{"port":80}]}`
)

// stuckKinds are the causes of which there are as many objects each.
var stuckKinds = []stuckKind{
	finalized(core, "configmaps", "forgotten.example.com/finalizer", ""),
	finalized(core, "secrets", "cleanup.unknown.example.org/secret", ""),
	finalized(core, "configmaps", "resources-finalizer.argocd.argoproj.io/background", ""),
	finalized(core, "services", "service.kubernetes.io/load-balancer-cleanup", port),
	finalized(core, "pods", "batch.kubernetes.io/job-tracking", `,"spec":`+podSpec),
	finalized(core, "persistentvolumeclaims", "provisioner.storage.kubernetes.io/cloning-protection", claimSpec),
	finalized(core, "serviceaccounts", "accounts.example.net/protect", ""),
	finalized("/apis/apps/v1", "deployments", "rollout.example.net/guard", `,"spec":{"replicas":0,`+template(podSpec)+`}`),
	global(core, "persistentvolumes", "external-attacher/csi-example-com", volumeSpec),
	global(storage, "volumeattachments", "external-attacher/csi-example-com", attachment),
	global("/apis/rbac.authorization.k8s.io/v1", "clusterroles", "roles.example.net/guard", ""),
	custom(0, "product-00.example.com/cleanup"),
	custom(3, "product-01.example.com/cleanup"),
	custom(6, "finalizers.example.net/foreign"),
	usedClaim, lostPod, foreground, orphaning, deletedNamespace, chain,
}

// stuck makes the objects that are being deleted for ever.
func (c *creator) stuck(ctx context.Context, u ugliness) error {
	return each(ctx, u.terminating, func(ctx context.Context, i int) error {
		kind := i % len(stuckKinds)
		if err := stuckKinds[kind](ctx, c, &u, i/len(stuckKinds)); err != nil {
			return fmt.Errorf("stuck object %d: %w", kind, err)
		}
		return nil
	})
}

// usedClaim is a claim that a pod uses.
func usedClaim(ctx context.Context, c *creator, u *ugliness, i int) error {
	name, path := fmt.Sprintf("used-%06d", i), core+"/namespaces/"+u.namespaceOf(i)
	pod := strings.Replace(podSpec, `"volumes":[`, `"nodeName":"node-1","volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"`+name+`"}},`, 1)
	if _, err := c.create(ctx, path+"/pods", `{`+meta("uses-"+name, "")+`,"spec":`+pod+`}`); err != nil {
		return err
	}
	return c.createDeleted(ctx, path+"/persistentvolumeclaims", withFinalizer(name, "kubernetes.io/pvc-protection", "", claimSpec), "")
}

// lostPod is a pod on a node that is not there.
func lostPod(ctx context.Context, c *creator, u *ugliness, i int) error {
	pod := strings.Replace(podSpec, `{`, `{"nodeName":"node-that-went",`, 1)
	return c.createDeleted(ctx, core+"/namespaces/"+u.namespaceOf(i)+"/pods", `{`+meta(fmt.Sprintf("lost-%06d", i), "")+`,"spec":`+pod+`}`, "")
}

// foreground is an owner in foreground deletion whose dependent has a finalizer.
func foreground(ctx context.Context, c *creator, u *ugliness, i int) error {
	name, path := fmt.Sprintf("foreground-%06d", i), core+"/namespaces/"+u.namespaceOf(i)+"/configmaps"
	uid, err := c.create(ctx, path, `{`+meta(name, "")+`}`)
	if err != nil {
		return err
	}
	owner := ownedBy("v1", "ConfigMap", name, uid)
	if _, err := c.create(ctx, path, withFinalizer(name+"-dependent", "forgotten.example.com/finalizer", owner, "")); err != nil {
		return err
	}
	return c.remove(ctx, path+"/"+name, metav1.DeletePropagationForeground)
}

// orphaning is an owner whose dependents are to stay.
func orphaning(ctx context.Context, c *creator, u *ugliness, i int) error {
	name, path := fmt.Sprintf("orphaning-%06d", i), core+"/namespaces/"+u.namespaceOf(i)+"/configmaps"
	return c.createDeleted(ctx, path, `{`+meta(name, "")+`}`, metav1.DeletePropagationOrphan)
}

// deletedNamespace is a namespace with objects in it, all of which are deleted and one
// of which stays.
func deletedNamespace(ctx context.Context, c *creator, _ *ugliness, i int) error {
	name := fmt.Sprintf("closed-%06d", i)
	if _, err := c.create(ctx, core+"/namespaces", `{`+meta(name, "")+`}`); err != nil {
		return err
	}
	if _, err := c.create(ctx, core+"/namespaces/"+name+"/configmaps", `{`+meta("left", "")+`}`); err != nil {
		return err
	}
	err := c.createDeleted(ctx, core+"/namespaces/"+name+"/secrets", withFinalizer("kept", "cleanup.unknown.example.org/secret", "", ""), "")
	return errors.Join(err, c.remove(ctx, core+"/namespaces/"+name, ""))
}

// chain is a chain of owners in foreground deletion, of which the last is held by the
// finalizer of a product.
func chain(ctx context.Context, c *creator, u *ugliness, i int) error {
	const length = 4
	owner, path := "", core+"/namespaces/"+u.namespaceOf(i)+"/configmaps"
	for k := range length {
		name := fmt.Sprintf("chain-%06d-%d", i, k)
		body := `{` + meta(name, owner) + `}`
		if k == length-1 {
			body = withFinalizer(name, "product-00.example.com/cleanup", owner, "")
		}
		uid, err := c.create(ctx, path, body)
		if err != nil {
			return err
		}
		owner = ownedBy("v1", "ConfigMap", name, uid)
	}
	for k := range length {
		policy := metav1.DeletePropagationForeground
		if k == length-1 {
			policy = ""
		}
		if err := c.remove(ctx, fmt.Sprintf("%s/chain-%06d-%d", path, i, k), policy); err != nil {
			return err
		}
	}
	return nil
}

// garbageKinds are what there is of garbage, as many objects of each.
var garbageKinds = []struct{ group, resource, finalizer, more string }{
	{core, "configmaps", "", ""},
	{core, "secrets", "cleanup.unknown.example.org/secret", ""},
	{core, "services", "service.kubernetes.io/load-balancer-cleanup", port},
	{core, "pods", "", `,"spec":` + podSpec},
	{core, "persistentvolumeclaims", "kubernetes.io/pvc-protection", claimSpec},
	{core, "serviceaccounts", "", ""},
	{"/apis/apps/v1", "replicasets", "", `,"spec":{"replicas":0,` + template(podSpec) + `}`},
	{"/apis/apps/v1", "statefulsets", "", `,"spec":{"replicas":0,"serviceName":"x",` + template(podSpec) + `}`},
	{"/apis/apps/v1", "deployments", "rollout.example.net/guard", `,"spec":{"replicas":0,` + template(podSpec) + `}`},
	{"/apis/" + groupOf(0) + "/v1", "widget000s", "product-00.example.com/cleanup", ""},
	{"/apis/" + groupOf(3) + "/v1", "widget003s", "product-01.example.com/cleanup", ""},
	{"/apis/" + groupOf(6) + "/v1", "widget006s", "", ""},
}

// garbage makes what a garbage collector would delete.
func (c *creator) garbage(ctx context.Context, u ugliness) error {
	return each(ctx, u.garbage, func(ctx context.Context, i int) error {
		kind := &garbageKinds[i%len(garbageKinds)]
		name := fmt.Sprintf("garbage-%05d", i)
		owner := ownedBy("apps/v1", "Deployment", "gone", fmt.Sprintf("00000000-0000-4000-9000-%012d", i))
		body := `{` + meta(name, owner) + kind.more + `}`
		if kind.finalizer != "" {
			body = withFinalizer(name, kind.finalizer, owner, kind.more)
		}
		if number, is := strings.CutPrefix(kind.resource, "widget"); is {
			body = strings.Replace(body, `{`, `{"apiVersion":"`+strings.TrimPrefix(kind.group, "/apis/")+`","kind":"Widget`+strings.TrimSuffix(number, "s")+`",`, 1)
		}
		return c.createServed(ctx, kind.group+"/namespaces/"+u.namespaceOf(i)+"/"+kind.resource, body)
	})
}

// createDeleted creates an object and deletes it with a policy, or by default.
func (c *creator) createDeleted(ctx context.Context, path, body string, policy metav1.DeletionPropagation) error {
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		return err
	}
	if err := c.createServed(ctx, path, body); err != nil {
		return err
	}
	return c.remove(ctx, path+"/"+o.Name, policy)
}

// remove sends a DELETE.
func (c *creator) remove(ctx context.Context, path string, policy metav1.DeletionPropagation) error {
	request := c.client.Delete().AbsPath(path).SetHeader("Content-Type", "application/json")
	if policy != "" {
		request = request.Body([]byte(`{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"` + string(policy) + `"}`))
	}
	return request.Do(ctx).Error()
}
