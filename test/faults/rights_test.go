// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-gc/kubectl-gc/test/differential/live"
)

// TestReadsWithoutARight runs each command that reads with the role that docs/security.md
// prints for it, and with that role but for one right. It must say what it says to somebody
// who may do everything, or say that something is missing, and then it may know less, but
// nothing else.
func TestReadsWithoutARight(t *testing.T) {
	w, err := newReadWorld(t)
	if err != nil {
		t.Fatal(err)
	}
	roles, err := newRoles(w.World)
	if err != nil {
		t.Fatal(err)
	}
	seeds(t, 10, 2, func(seed uint64) {
		r := rand.New(rand.NewPCG(seed, 3))
		words := w.commands[seed%uint64(len(w.commands))]
		file := forReading
		if words[0] != "tree" && words[0] != "graph" || r.IntN(2) == 0 {
			file = forDeleting
		}
		c := &readCase{seed: seed, world: w, dir: t.TempDir(), words: words}
		user, err := roles.user(t.Context(), r, file, seed%5 != 0, "get", "list")
		if err != nil {
			t.Error(err)
			return
		}
		defer user.forget(t)
		c.happened = append(c.happened, user.String())
		judge(t, seed, c.as(t.Context(), user.name), c)
	})
}

// as runs the command as a user.
func (c *readCase) as(ctx context.Context, user string) error {
	strict := c.seed/2%2 == 0
	want, err := c.world.answers[key(c.words, strict)]()
	if err != nil {
		return err
	}
	if c.said, err = c.world.say(ctx, c.world.kubeconfig, filepath.Join(c.dir, "snapshot"), c.words, strict, "--as="+user); err != nil {
		return err
	}
	return c.wrong(want, strict)
}

// TestWritesWithoutARight runs delete and collect with the role that docs/security.md prints
// for them but for one right. Nothing may go that does not go with all rights, what the
// command says must be so, and who has all rights can finish it.
func TestWritesWithoutARight(t *testing.T) {
	t.Parallel()
	cp, world := connect(t)
	roles, err := newRoles(world)
	if err != nil {
		t.Fatal(err)
	}
	seeds(t, 6, 3, func(seed uint64) {
		user, err := roles.user(t.Context(), rand.New(rand.NewPCG(seed, 4)), forDeleting, seed%5 != 0, "get", "list", "watch", "delete", "delete", "patch")
		if err != nil {
			t.Error(err)
			return
		}
		defer user.forget(t)
		c := &writeCase{seed: seed, world: world, kubeconfig: cp.Kubeconfig, dir: t.TempDir()}
		c.strike = func(ctx context.Context, _ *Proxy, play *live.Play, kubeconfig string) (*result, error) {
			return c.command(ctx, play, kubeconfig, "--as="+user.name)
		}
		judge(t, seed, c.run(t.Context()), fmt.Sprint(user, "\n", c))
	})
}

// The roles of docs/security.md.
const (
	forReading  = "clusterrole-tree.yaml"
	forDeleting = "clusterrole-delete.yaml"
)

// right is a verb on a type.
type right struct {
	schema.GroupResource
	verb string
}

// roles makes users with the rights of a role, or most of them.
type roles struct {
	client kubernetes.Interface
	// rights are those of the role in each file. Where it has "*" they are those on the
	// types that there are.
	rights map[string]map[right]bool
}

// used are the types that the worlds of the tests consist of: rights on them matter most.
var used = []string{"configmaps", "secrets", "deployments", "replicasets", "widgets", "gadgets", "namespaces", "nodes", "leases"}

func newRoles(world *live.World) (*roles, error) {
	client, err := kubernetes.NewForConfig(world.Config)
	if err != nil {
		return nil, err
	}
	lists, err := client.Discovery().ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	var all []schema.GroupResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for i := range list.APIResources {
			all = append(all, schema.GroupResource{Group: gv.Group, Resource: list.APIResources[i].Name})
		}
	}
	r := &roles{client: client, rights: map[string]map[right]bool{}}
	for _, file := range []string{forReading, forDeleting} {
		if r.rights[file], err = rightsIn(file, all); err != nil {
			return nil, err
		}
	}
	// "Add a rule for the types that you use", docs/security.md says.
	for _, verb := range []string{"get", "list", "watch", "delete", "patch"} {
		for _, o := range all {
			if slices.Contains([]string{"widgets", "gadgets"}, o.Resource) {
				r.rights[forDeleting][right{o, verb}] = true
			}
		}
	}
	return r, nil
}

// rightsIn reads a role among the docs.
func rightsIn(file string, all []schema.GroupResource) (map[right]bool, error) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", file))
	if err != nil {
		return nil, err
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(data, &role); err != nil {
		return nil, err
	}
	rights := map[right]bool{}
	for _, rule := range role.Rules {
		for _, o := range all {
			has := func(list []string, what string) bool {
				return slices.Contains(list, what) || slices.Contains(list, rbacv1.ResourceAll)
			}
			if !has(rule.APIGroups, o.Group) || !has(rule.Resources, o.Resource) {
				continue
			}
			for _, verb := range rule.Verbs {
				rights[right{o, verb}] = true
			}
		}
	}
	if len(rights) == 0 {
		return nil, fmt.Errorf("%s gives no rights", file)
	}
	return rights, nil
}

// user is somebody with the rights of a role, but for one.
type user struct {
	client     kubernetes.Interface
	name, file string
	lacks      *right // nil when nothing is missing
}

// String says who it is.
func (u *user) String() string {
	if u.lacks == nil {
		return "with " + u.file
	}
	return fmt.Sprintf("with %s, but not %s %s", u.file, u.lacks.verb, u.lacks.GroupResource)
}

// user makes a user with the rights in a file, and if so, without one of the verbs on one of
// the types. It returns when the API server knows.
func (r *roles) user(ctx context.Context, random *rand.Rand, file string, lacking bool, verbs ...string) (*user, error) {
	u := &user{client: r.client, name: fmt.Sprintf("user-%08x", random.Uint32()), file: file}
	rights := maps.Clone(r.rights[file])
	if lacking {
		u.lacks = r.draw(random, file, verbs)
		delete(rights, *u.lacks)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: u.name}, Rules: rulesOf(rights)}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: u.name}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: u.name}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: u.name},
	}
	_, err := r.client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	if err == nil {
		_, err = r.client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, err
	}
	return u, u.await(ctx, rights)
}

// draw returns one of the rights in a file, more often than not one that matters.
func (r *roles) draw(random *rand.Rand, file string, verbs []string) *right {
	verb := verbs[random.IntN(len(verbs))]
	onlyUsed := random.IntN(4) > 0
	var among []right
	for candidate := range r.rights[file] {
		if candidate.verb == verb && (!onlyUsed || slices.Contains(used, candidate.Resource)) {
			among = append(among, candidate)
		}
	}
	if len(among) == 0 { // a role for reading has no watch
		for candidate := range r.rights[file] {
			among = append(among, candidate)
		}
	}
	slices.SortFunc(among, compareRights)
	return &among[random.IntN(len(among))]
}

func compareRights(a, b right) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }

// rulesOf writes rights as RBAC does.
func rulesOf(rights map[right]bool) []rbacv1.PolicyRule {
	verbs := map[schema.GroupResource][]string{}
	for r := range rights {
		verbs[r.GroupResource] = append(verbs[r.GroupResource], r.verb)
	}
	var rules []rbacv1.PolicyRule
	for on, verbs := range verbs {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{on.Group}, Resources: []string{on.Resource}, Verbs: verbs})
	}
	return rules
}

// await returns when the user has one of the rights, and not the one that is missing.
func (u *user) await(ctx context.Context, rights map[right]bool) error {
	const pause, patience = 50 * time.Millisecond, 30 * time.Second
	one := slices.MinFunc(slices.Collect(maps.Keys(rights)), compareRights)
	return wait.PollUntilContextTimeout(ctx, pause, patience, true, func(ctx context.Context) (bool, error) {
		may, err := u.may(ctx, one)
		if err != nil || !may || u.lacks == nil {
			return may, err
		}
		mayToo, err := u.may(ctx, *u.lacks)
		if err == nil && mayToo {
			err = fmt.Errorf("%s has it", u)
		}
		return true, err
	})
}

func (u *user) may(ctx context.Context, r right) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: u.name, ResourceAttributes: &authorizationv1.ResourceAttributes{Group: r.Group, Resource: r.Resource, Verb: r.verb},
	}}
	answer, err := u.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

// forget takes the user's rights away.
func (u *user) forget(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	err := errors.Join(
		u.client.RbacV1().ClusterRoleBindings().Delete(ctx, u.name, metav1.DeleteOptions{}),
		u.client.RbacV1().ClusterRoles().Delete(ctx, u.name, metav1.DeleteOptions{}))
	if err != nil {
		t.Error(err)
	}
}
