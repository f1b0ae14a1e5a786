// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// objectsClient sends the requests of `kubectl tree deployment NAME` and keeps the
// answers, and that is all: the Deployment, then every namespaced type in its
// namespace at once, whole objects in pages of 250, through client-go's dynamic
// client at 1,000 requests a second, with the types from the discovery cache on
// disk (kubectl-tree v0.4, cmd/kubectl-tree: rootcmd.go, query.go).
func objectsClient(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("objects", flag.ContinueOnError)
	client := genericclioptions.NewConfigFlags(true)
	flags.StringVar(client.KubeConfig, "kubeconfig", "", "the cluster")
	flags.StringVar(client.Namespace, "n", "", "the namespace")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := client.ToRESTConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst, config.WarningHandlerWithContext = 1000, 1000, rest.NoWarnings{}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	types, err := namespacedTypes(client)
	if err != nil {
		return err
	}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	if _, err := objects.Resource(deployments).Namespace(*client.Namespace).Get(ctx, flags.Arg(0), metav1.GetOptions{}); err != nil {
		return err
	}
	items := make([][]unstructured.Unstructured, len(types))
	var group errgroup.Group
	for i, resource := range types {
		group.Go(func() (err error) {
			items[i], err = listObjects(ctx, objects.Resource(resource).Namespace(*client.Namespace))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return Answer{Objects: len(slices.Concat(items...))}.print()
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

func listObjects(ctx context.Context, client dynamic.ResourceInterface) ([]unstructured.Unstructured, error) {
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
