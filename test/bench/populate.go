// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-gc/kubectl-gc/test/bench/canned"
)

// writers is how many objects are created at a time.
const writers = 16

// populate fills a cluster through its API, with the same applications as the
// made-up one has: they belong together as controllers would have made them, and
// so need none.
func populate(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("populate", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "the cluster")
	objects := flags.Int("objects", 10_000, "how many objects there are to be, about")
	dependents := flags.Int("dependents", 0, "create one owner with that many dependents instead")
	var u ugliness
	flags.IntVar(&u.types, "types", 0, "how many types are defined beside those of Kubernetes")
	flags.IntVar(&u.wrong, "wrong", 0, "how many owner references are wrong")
	flags.IntVar(&u.terminating, "terminating", 0, "how many objects are in deletion for ever; needs types")
	flags.IntVar(&u.garbage, "garbage", 0, "how many objects have only owners that are gone; needs types")
	namespaces := flags.Int("namespaces", 0, "how many namespaces there are to be at least")
	there := flags.Int("there", 0, "how many of the objects are there already, about")
	apiserver := flags.Int("apiserver", 0, "the API server's process: create one namespace of applications, and copy those in etcd")
	if err := flags.Parse(args); err != nil {
		return err
	}
	c, err := newCreator(*kubeconfig)
	if err != nil {
		return err
	}
	if *dependents > 0 {
		return c.fan(ctx, *dependents)
	}
	u.namespaces = max(1, *objects/canned.PerApplication/perNamespace)
	from, to := *there/canned.PerApplication, *objects/canned.PerApplication
	copied := to // from there on
	if *apiserver != 0 {
		copied, c.podSpec = min(to, from+perNamespace), slightSpec
	}
	if err := c.applications(ctx, from, copied); err != nil {
		return err
	}
	if *apiserver != 0 {
		e, err := etcdOf(*apiserver)
		if err != nil {
			return err
		}
		if err := c.copies(ctx, e, copied, to); err != nil {
			return err
		}
	}
	if err := c.spoil(ctx, u); err != nil {
		return err
	}
	return each(ctx, max(0, *namespaces-u.namespaces), func(ctx context.Context, i int) error {
		return c.namespace(ctx, fmt.Sprintf("empty-%05d", i))
	})
}

// perNamespace is the number of applications in a namespace.
const perNamespace = 100

// creator creates objects from their JSON.
type creator struct {
	client  rest.Interface
	podSpec string // of the applications
}

func newCreator(kubeconfig string) (*creator, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	return creatorFor(config)
}

func creatorFor(config *rest.Config) (*creator, error) {
	config = metadata.ConfigFor(config)
	config.QPS, config.APIPath, config.GroupVersion = -1, "/", &schema.GroupVersion{}
	client, err := rest.RESTClientFor(config)
	return &creator{client, podSpec}, err
}

// create creates an object and returns its UID.
func (c *creator) create(ctx context.Context, path, body string) (string, error) {
	data, err := c.client.Post().AbsPath(path).SetHeader("Content-Type", "application/json").
		SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").Body([]byte(body)).DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("creating at %s: %w", path, err)
	}
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(data, &o); err != nil {
		return "", err
	}
	return string(o.UID), nil
}

// createServed is create for an object whose type has been defined a moment ago.
func (c *creator) createServed(ctx context.Context, path, body string) (err error) {
	poll := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err = c.create(ctx, path, body)
		return !apierrors.IsNotFound(err), nil
	})
	return cmp.Or(err, poll)
}

const (
	labels = `"labels":{"app.kubernetes.io/name":"shop","app.kubernetes.io/instance":"shop-production","app.kubernetes.io/version":"1.42.0",` +
		`"app.kubernetes.io/managed-by":"Helm","helm.sh/chart":"shop-1.42.0","app":"shop"},` +
		`"annotations":{"checksum/config":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}`
	podBegin = `"terminationGracePeriodSeconds":30,"containers":[{"name":"main","image":"registry.example.com/shop:1.42.0",` +
		`"ports":[{"name":"http","containerPort":8080}],"env":[{"name":"MODE","value":"production"},{"name":"LEVEL","value":"info"}],`
	podResources = `"resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"memory":"256Mi"}},`
	podEnd       = `"readinessProbe":{"httpGet":{"path":"/ready","port":8080}},"volumeMounts":[{"name":"config","mountPath":"/etc/shop"}]}],` +
		`"volumes":[{"name":"config","configMap":{"name":"shop"}}]}`
	podSpec = `{` + podBegin + podResources + podEnd
	// slightSpec has no quantities, and no token in a volume: they are a sixth of what an API
	// server keeps of such objects.
	slightSpec = `{"automountServiceAccountToken":false,` + podBegin + podEnd
)

func template(podSpec string) string {
	return `"selector":{"matchLabels":{"app":"shop"}},"template":{"metadata":{"labels":{"app":"shop"}},"spec":` + podSpec + `}`
}

// meta is the metadata of an object, below an owner if there is one.
func meta(name, owner string) string {
	if owner != "" {
		owner = `,"ownerReferences":[` + owner + `]`
	}
	return fmt.Sprintf(`"metadata":{"name":%q,%s%s}`, name, labels, owner)
}

func ownedBy(apiVersion, kind, name, uid string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"controller":true,"blockOwnerDeletion":true}`, apiVersion, kind, name, uid)
}

// nameOf and namespaceOf are of the application with a number.
func nameOf(i int) string      { return fmt.Sprintf("app-%08d", i) }
func namespaceOf(i int) string { return fmt.Sprintf("team-%05d", i/perNamespace) }

// applications creates those from one number to another, a hundred in a namespace.
func (c *creator) applications(ctx context.Context, from, to int) error {
	var group errgroup.Group
	group.SetLimit(writers)
	for i := from; i < to; i++ {
		namespace := namespaceOf(i)
		if i%perNamespace == 0 {
			if err := c.namespace(ctx, namespace); err != nil {
				return errors.Join(err, group.Wait())
			}
		}
		group.Go(func() error { return c.application(ctx, namespace, nameOf(i)) })
	}
	return group.Wait()
}

func (c *creator) namespace(ctx context.Context, name string) error {
	_, err := c.create(ctx, "/api/v1/namespaces", `{"metadata":{"name":"`+name+`"}}`)
	return err
}

func (c *creator) application(ctx context.Context, namespace, name string) error {
	apps, core := "/apis/apps/v1/namespaces/"+namespace, "/api/v1/namespaces/"+namespace
	uid, err := c.create(ctx, apps+"/deployments", `{`+meta(name, "")+`,"spec":{"replicas":5,`+template(c.podSpec)+`}}`)
	if err != nil {
		return err
	}
	const hash = "5d4f8c7b9" // which pods of Deployments bear as a label
	set := name + "-" + hash
	uid, err = c.create(ctx, apps+"/replicasets",
		`{`+meta(set, ownedBy("apps/v1", "Deployment", name, uid))+`,"spec":{"replicas":5,`+template(c.podSpec)+`}}`)
	for i := 0; i < 5 && err == nil; i++ {
		marked := strings.Replace(meta(fmt.Sprintf("%s-%05d", set, i), ownedBy("apps/v1", "ReplicaSet", set, uid)), `"labels":{`, `"labels":{"pod-template-hash":"`+hash+`",`, 1)
		_, err = c.create(ctx, core+"/pods", `{`+marked+`,"spec":`+c.podSpec+`}`)
	}
	for i := 0; i < 2 && err == nil; i++ {
		_, err = c.create(ctx, core+"/configmaps", `{`+meta(fmt.Sprintf("%s-%d", name, i), "")+`,"data":{"key":"value"}}`)
	}
	if err == nil {
		_, err = c.create(ctx, core+"/secrets", `{`+meta(name, "")+`,"stringData":{"key":"value"}}`)
	}
	return err
}

// fan creates the ConfigMap owner and its dependents.
func (c *creator) fan(ctx context.Context, dependents int) error {
	const path = "/api/v1/namespaces/default/configmaps"
	uid, err := c.create(ctx, path, `{`+meta("owner", "")+`}`)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(writers)
	for i := range dependents {
		group.Go(func() error {
			_, err := c.create(ctx, path, `{`+meta(fmt.Sprintf("dependent-%06d", i), ownedBy("v1", "ConfigMap", "owner", uid))+`}`)
			return err
		})
	}
	return group.Wait()
}

// deleteClient deletes the ConfigMaps of a fan: all of them with bare DELETEs in
// parallel, or the owner alone, waiting until a garbage collector has done the
// rest.
func deleteClient(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("delete", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "the cluster")
	wait := flags.Bool("wait", false, "delete the owner alone and wait for the others to go")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	maps := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "app=shop"})
	if err != nil {
		return err
	}
	if *wait {
		return deleteOwner(ctx, maps)
	}
	background := metav1.DeletePropagationBackground
	var group errgroup.Group
	group.SetLimit(writers)
	for i := range list.Items {
		group.Go(func() error {
			return maps.Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{PropagationPolicy: &background})
		})
	}
	return errors.Join(group.Wait(), Answer{Objects: len(list.Items)}.print())
}

func deleteOwner(ctx context.Context, maps metadata.ResourceInterface) error {
	background := metav1.DeletePropagationBackground
	if err := maps.Delete(ctx, "owner", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		return err
	}
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "app=shop", Limit: 1})
		return err == nil && len(list.Items) == 0, err
	})
	return errors.Join(err, Answer{}.print())
}
