// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-gc/kubectl-gc/test/foresight/toy"
)

// expand puts the names of the copy into a text.
func (c *copied) expand(text string) string {
	return os.Expand(text, func(name string) string {
		switch name {
		case "X":
			return c.id
		case "S":
			return c.id + "-system"
		case "A", "B":
			return c.id + "-" + strings.ToLower(name)
		case "GROUP":
			return c.id + ".foresight.test"
		case "TOYS", "GADGETS":
			return "customresourcedefinition/" + strings.ToLower(name) + "." + c.id + ".foresight.test"
		}
		panic("no such name: $" + name)
	})
}

// namespaces are those of the copy.
func (c *copied) namespaces() []string {
	return []string{c.expand("$S"), c.expand("$A"), c.expand("$B")}
}

// manifests returns a layout's objects in the order in which they are made: the
// namespaces and rights; the types; what the operators need, and they; the objects.
func (c *copied) manifests() (base, types, operators, objects string) {
	for _, namespace := range c.namespaces() {
		base += document("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", namespace)
	}
	base += document("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %s}, rules: %s}", c.expand("shared-$X"), c.rules())
	for i := range c.layout.operators {
		if o := &c.layout.operators[i]; !o.elsewhere {
			base += c.account(o)
			operators += c.needs(o) + c.workload(o)
		}
	}
	types = c.definition("toys", "Toy")
	if c.layout.gadgets {
		types += c.definition("gadgets", "Gadget")
	}
	for _, o := range c.layout.objects {
		objects += c.instances(&o)
	}
	return c.expand(base), c.expand(types), c.expand(operators), c.expand(objects)
}

func document(format string, args ...any) string { return fmt.Sprintf(format, args...) + "\n---\n" }

// rules let an operator work on its types.
func (c *copied) rules() string {
	return "[{apiGroups: [$GROUP], resources: ['*'], verbs: [get, list, watch, update, patch]}]"
}

// account is the operator's service account, with its rights.
func (c *copied) account(o *operator) string {
	name := o.name + "-$X"
	subjects := fmt.Sprintf("subjects: [{kind: ServiceAccount, name: %s, namespace: %s}]", name, o.in)
	const rbac = "apiVersion: rbac.authorization.k8s.io/v1, "
	text := document("{apiVersion: v1, kind: ServiceAccount, metadata: {name: %s, namespace: %s}}", name, o.in)
	text += document("{"+rbac+"kind: Role, metadata: {name: %s-leader, namespace: %s}, rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}]}", name, o.in)
	text += document("{"+rbac+"kind: RoleBinding, metadata: {name: %s-leader, namespace: %s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %s-leader}, %s}", name, o.in, name, subjects)
	binding := func(kind, role string) string {
		meta := "name: " + name
		if kind == "RoleBinding" {
			meta += ", namespace: " + o.watch
		}
		return document("{"+rbac+"kind: %s, metadata: {%s}, roleRef: {apiGroup: rbac.authorization.k8s.io, %s}, %s}", kind, meta, role, subjects)
	}
	switch {
	case o.serves == "none":
	case o.grants == "cluster":
		text += document("{"+rbac+"kind: ClusterRole, metadata: {name: %s}, rules: %s}", name, c.rules())
		text += binding("ClusterRoleBinding", "kind: ClusterRole, name: "+name)
	case o.grants == "namespace":
		text += document("{"+rbac+"kind: Role, metadata: {name: %s, namespace: %s}, rules: %s}", name, o.watch, c.rules())
		text += binding("RoleBinding", "kind: Role, name: "+name)
	case o.grants == "shared":
		text += binding("RoleBinding", "kind: ClusterRole, name: shared-$X")
	case o.grants == "admin":
		text += binding("ClusterRoleBinding", "kind: ClusterRole, name: cluster-admin")
	}
	return text
}

// needs are what the operator mounts, and the Service through which it is called.
func (c *copied) needs(o *operator) string {
	name, text := o.name+"-$X", ""
	if slices.Contains(o.mounts, "config") {
		text += document("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}, data: {level: info}}", name, o.in)
	}
	if slices.Contains(o.mounts, "cert") {
		certificate, key := c.authority.issue(c.expand(name + "." + o.in + ".svc"))
		text += document("{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, metadata: {name: %s, namespace: %s}, data: {tls.crt: %s, tls.key: %s}}",
			name, o.in, base64.StdEncoding.EncodeToString(certificate), base64.StdEncoding.EncodeToString(key))
		text += document("{apiVersion: v1, kind: Service, metadata: {name: %s, namespace: %s}, spec: {selector: {app: %s}, ports: [{port: 443, targetPort: %d}]}}",
			name, o.in, name, toy.Port)
	}
	return text
}

// workload is what runs the operator.
func (c *copied) workload(o *operator) string {
	name := o.name + "-$X"
	args := []string{"--name=" + name, "--group=$GROUP", "--finalizer=$GROUP/cleanup", "--watch=" + o.watch}
	if o.serves == "none" {
		args = append(args, "--resources=")
	} else {
		args = append(args, "--resources="+o.serves)
	}
	args = append(args, o.args...)
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = strconv.Quote(arg)
	}
	var volumes, mounts []string
	for _, what := range o.mounts {
		source := map[string]string{"config": "configMap: {name: ", "cert": "secret: {secretName: "}[what]
		volumes = append(volumes, fmt.Sprintf("{name: %s, %s%s}}", what, source, name))
		mounts = append(mounts, fmt.Sprintf("{name: %s, mountPath: /etc/%s}", what, what))
	}
	spec := fmt.Sprintf("{serviceAccountName: %s, volumes: [%s], containers: [{name: operator, image: %s, args: [%s], volumeMounts: [%s]}]}",
		name, strings.Join(volumes, ", "), toy.Image, strings.Join(quoted, ", "), strings.Join(mounts, ", "))
	meta := fmt.Sprintf("metadata: {name: %s, namespace: %s, labels: {app: %s}}", name, o.in, name)
	if o.kind == "Pod" {
		return document("{apiVersion: v1, kind: Pod, %s, spec: %s}", meta, spec)
	}
	own := map[string]string{
		"Deployment":  fmt.Sprintf("replicas: %d, strategy: {type: Recreate}, ", o.replicas),
		"StatefulSet": fmt.Sprintf("replicas: %d, serviceName: %s, ", o.replicas, name),
	}[o.kind]
	return document("{apiVersion: apps/v1, kind: %s, %s, spec: {%sselector: {matchLabels: {app: %s}}, template: {metadata: {labels: {app: %s}}, spec: %s}}}",
		o.kind, meta, own, name, name, spec)
}

// definition is one of the types.
func (c *copied) definition(plural, kind string) string {
	scope, versions, conversion := "Namespaced", []string{"v1"}, ""
	if c.layout.clusterScoped {
		scope = "Cluster"
	}
	if c.layout.conversion != "" {
		versions = []string{"v1", "v2"}
		conversion = fmt.Sprintf("conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: %s}}, ", c.call(c.layout.conversion, "/convert"))
	}
	var served []string
	for i, version := range versions {
		served = append(served, fmt.Sprintf("{name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}", version, i == 0))
	}
	return document("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %s.$GROUP}, spec: {group: $GROUP, scope: %s, %snames: {plural: %s, singular: %s, kind: %s}, versions: [%s]}}",
		plural, scope, conversion, plural, strings.ToLower(kind), kind, strings.Join(served, ", "))
}

// call is the client configuration of a webhook that an operator serves.
func (c *copied) call(name, path string) string {
	for _, o := range c.layout.operators {
		if o.name == name {
			return fmt.Sprintf("{service: {namespace: %s, name: %s-$X, path: %s}, caBundle: %s}", o.in, name, path, c.authority.bundle())
		}
	}
	panic("no operator " + name)
}

// extensions are the webhook and the APIService that the API server calls.
func (c *copied) extensions() string {
	text := ""
	if name := c.layout.webhook; name != "" {
		text += document("{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: %s-$X}, webhooks: [{name: toys.$GROUP, "+
			"rules: [{apiGroups: [$GROUP], apiVersions: ['*'], operations: [CREATE, UPDATE], resources: ['*']}], failurePolicy: Fail, sideEffects: None, timeoutSeconds: 3, "+
			"admissionReviewVersions: [v1], clientConfig: %s}]}", name, c.call(name, "/validate"))
	}
	if name := c.layout.api; name != "" {
		text += document("{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.extension.$GROUP}, spec: {group: extension.$GROUP, version: v1, "+
			"groupPriorityMinimum: 100, versionPriority: 100, caBundle: %s, service: {namespace: $S, name: %s-$X}}}", c.authority.bundle(), name)
	}
	return c.expand(text)
}

// ordinals are the names of objects.
var ordinals = []string{"one", "two", "three", "four"}

func (c *copied) instances(o *objects) string {
	kind := map[string]string{"toys": "Toy", "gadgets": "Gadget"}[o.of]
	version, text := "v1", ""
	if c.layout.conversion != "" {
		version = "v2"
	}
	for _, name := range ordinals[:o.count] {
		meta := "name: " + name
		if o.in != "" {
			meta += ", namespace: " + o.in
		}
		if o.finalizer != "" {
			meta += ", finalizers: ['" + o.finalizer + "']"
		}
		text += document("{apiVersion: $GROUP/%s, kind: %s, metadata: {%s}, spec: {suspend: %t}}", version, kind, meta, o.suspend)
	}
	return text
}

// An authority issues the certificates of services.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "toys"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(0, 0, 7),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return &authority{certificate, key}, err
}

// bundle is the authority in the form of a caBundle.
func (a *authority) bundle() string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

// issue returns a certificate for a name and its key.
func (a *authority) issue(name string) (certificate, key []byte) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(0, 0, 7),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &own.PublicKey, a.key)
	if err != nil {
		panic(err) // the template is as it has to be
	}
	raw, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		panic(err) // a key of this kind can be written
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}
