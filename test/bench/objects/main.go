// SPDX-License-Identifier: Apache-2.0

// Command objects sends the requests of `kubectl tree deployment NAME` and keeps
// the answers, and that is all: the Deployment, then every namespaced type in its
// namespace at once, whole objects in pages of 250, through client-go's dynamic
// client at 1,000 requests a second, with the types from the discovery cache on
// disk (kubectl-tree v0.4, cmd/kubectl-tree: rootcmd.go, query.go). It is a program
// of its own so that the others of the benchmark do not carry its packages.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func main() {
	client := genericclioptions.NewConfigFlags(true)
	flag.StringVar(client.KubeConfig, "kubeconfig", "", "the cluster")
	flag.StringVar(client.Namespace, "n", "", "the namespace")
	flag.Parse()
	n, err := read(context.Background(), client, flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Printf("{\"objects\":%d}\n", n)
}

// read reads the Deployment and its namespace and returns the number of objects.
func read(ctx context.Context, client *genericclioptions.ConfigFlags, deployment string) (int, error) {
	config, err := client.ToRESTConfig()
	if err != nil {
		return 0, err
	}
	config.QPS, config.Burst, config.WarningHandlerWithContext = 1000, 1000, rest.NoWarnings{}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	types, err := namespacedTypes(client)
	if err != nil {
		return 0, err
	}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	if _, err := objects.Resource(deployments).Namespace(*client.Namespace).Get(ctx, deployment, metav1.GetOptions{}); err != nil {
		return 0, err
	}
	items := make([][]unstructured.Unstructured, len(types))
	var group errgroup.Group
	for i, resource := range types {
		group.Go(func() (err error) {
			items[i], err = list(ctx, objects.Resource(resource).Namespace(*client.Namespace))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	n := 0
	for _, list := range items {
		n += len(list)
	}
	return n, nil
}

// namespacedTypes returns the types that can be listed in a namespace.
func namespacedTypes(client genericclioptions.RESTClientGetter) ([]schema.GroupVersionResource, error) {
	cached, err := client.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	lists, err := cached.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists)
	var types []schema.GroupVersionResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if r.Namespaced {
				types = append(types, gv.WithResource(r.Name))
			}
		}
	}
	return types, nil
}

func list(ctx context.Context, client dynamic.ResourceInterface) ([]unstructured.Unstructured, error) {
	var items []unstructured.Unstructured
	options := metav1.ListOptions{Limit: 250}
	for {
		page, err := client.List(ctx, options)
		if err != nil {
			return nil, err
		}
		items = append(items, page.Items...)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return items, nil
		}
	}
}
