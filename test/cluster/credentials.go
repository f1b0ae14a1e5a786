// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/csv"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Users that every control plane has. All are in the group system:masters,
// which may do everything; the names tell them apart in the audit log.
const (
	adminUser             = "admin"
	controllerManagerUser = "system:kube-controller-manager"
	kubeletUser           = "fake-kubelet"
)

// credentials are the keys and tokens of one control plane, as files in its
// directory.
type credentials struct {
	dir    string
	ca     []byte // PEM
	tokens map[string]string
}

func (c *credentials) caFile() string            { return filepath.Join(c.dir, "ca.crt") }
func (c *credentials) certFile() string          { return filepath.Join(c.dir, "serving.crt") }
func (c *credentials) keyFile() string           { return filepath.Join(c.dir, "serving.key") }
func (c *credentials) serviceAccountKey() string { return filepath.Join(c.dir, "service-account.key") }
func (c *credentials) tokenFile() string         { return filepath.Join(c.dir, "tokens.csv") }

// kubeconfig returns the path of the kubeconfig of a user. A user name may
// have characters that a file name may not.
func (c *credentials) kubeconfig(user string) string {
	return filepath.Join(c.dir, url.PathEscape(user)+".kubeconfig")
}

// newCredentials writes the keys, and a token for each user, to dir.
func newCredentials(dir string, users []User) (*credentials, error) {
	c := &credentials{dir: dir, tokens: map[string]string{}}
	all := []User{
		{Name: adminUser, Groups: []string{"system:masters"}},
		{Name: controllerManagerUser, Groups: []string{"system:masters"}},
		{Name: kubeletUser, Groups: []string{"system:masters"}},
	}
	if err := c.writeTokens(append(all, users...)); err != nil {
		return nil, fmt.Errorf("writing the tokens: %w", err)
	}
	if err := c.writeServingCertificate(); err != nil {
		return nil, fmt.Errorf("writing the serving certificate: %w", err)
	}
	if _, err := writeKey(c.serviceAccountKey()); err != nil {
		return nil, fmt.Errorf("writing the service account key: %w", err)
	}
	return c, nil
}

// writeTokens makes up a token for each user and writes the file that
// kube-apiserver --token-auth-file reads.
func (c *credentials) writeTokens(users []User) error {
	var file bytes.Buffer
	lines := csv.NewWriter(&file)
	for _, user := range users {
		if user.Name == "" {
			return fmt.Errorf("a user has no name")
		}
		if c.tokens[user.Name] != "" {
			return fmt.Errorf("there are two users called %q", user.Name)
		}
		token := rand.Text()
		c.tokens[user.Name] = token
		if err := lines.Write([]string{token, user.Name, user.Name, strings.Join(user.Groups, ",")}); err != nil {
			return err
		}
	}
	lines.Flush()
	return os.WriteFile(c.tokenFile(), file.Bytes(), 0o600)
}

// writeServingCertificate writes a certificate authority and one certificate
// that all components serve with. It is not for secrecy on the loopback
// interface: it proves that the program that answers on a port is ours.
func (c *credentials) writeServingCertificate() error {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca := certificate(1, "kubectl-gc test control plane")
	ca.IsCA = true
	ca.BasicConstraintsValid = true
	ca.KeyUsage = x509.KeyUsageCertSign
	if c.ca, err = writeCertificate(c.caFile(), ca, ca, &caKey.PublicKey, caKey); err != nil {
		return err
	}
	key, err := writeKey(c.keyFile())
	if err != nil {
		return err
	}
	serving := certificate(2, "localhost")
	serving.KeyUsage = x509.KeyUsageDigitalSignature
	serving.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	serving.DNSNames = []string{"localhost", "kubernetes.default.svc"}
	serving.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	_, err = writeCertificate(c.certFile(), serving, ca, &key.PublicKey, caKey)
	return err
}

// certificate returns a template that is valid for a year from an hour ago.
func certificate(serial int64, commonName string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(1, 0, 0),
	}
}

// writeCertificate signs a template and writes it as PEM, which it returns.
func writeCertificate(path string, template, parent *x509.Certificate, key *ecdsa.PublicKey, signer *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, signer)
	if err != nil {
		return nil, err
	}
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return data, os.WriteFile(path, data, 0o600)
}

// writeKey makes up a private key and writes it as PEM.
func writeKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	data := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	return key, os.WriteFile(path, data, 0o600)
}

// writeKubeconfigs writes a kubeconfig for each user, with the keys in it, so
// that a copy of the file works anywhere on this machine.
func (c *credentials) writeKubeconfigs(server string) error {
	const name = "control-plane"
	for user, token := range c.tokens {
		config := clientcmdapi.NewConfig()
		config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: c.ca}
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
		config.CurrentContext = name
		if err := clientcmd.WriteToFile(*config, c.kubeconfig(user)); err != nil {
			return fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
		}
	}
	return nil
}
