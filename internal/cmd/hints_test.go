// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// Requests that do not come through, for reasons that are real, and what to look at.
func TestConnectionHint(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	strict := httptest.NewUnstartedServer(http.NotFoundHandler())
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	strict.Config.ErrorLog = log.New(io.Discard, "", 0)
	strict.StartTLS()
	defer strict.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)

	trusted := func(s *httptest.Server) *tls.Config {
		pool := x509.NewCertPool()
		pool.AddCert(s.Certificate())
		return &tls.Config{RootCAs: pool}
	}
	otherName := trusted(server)
	otherName.ServerName = "api.other.test"
	for _, test := range []struct {
		name      string
		transport *http.Transport
		url       string
		hint      string
	}{
		{"another authority", &http.Transport{}, server.URL, "certificate-authority"},
		{"another name", &http.Transport{TLSClientConfig: otherName}, server.URL, "--tls-server-name"},
		{"no client certificate", &http.Transport{TLSClientConfig: trusted(strict)}, strict.URL, "client certificate"},
		{"no TLS", &http.Transport{}, strings.Replace(plain.URL, "http:", "https:", 1), "does not speak TLS"},
		{"a proxy that is not there", &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return url.Parse(closed.URL) }}, server.URL, "HTTPS_PROXY"},
		{"nothing is there", &http.Transport{}, closed.URL, "check that the cluster runs"},
	} {
		response, err := (&http.Client{Transport: test.transport}).Get(test.url)
		if err == nil {
			_ = response.Body.Close()
			t.Errorf("%s: it came through", test.name)
			continue
		}
		if got := connectionHint(err); !strings.Contains(got, test.hint) {
			t.Errorf("%s: %q is said of %v, want %q in it", test.name, got, err, test.hint)
		}
	}
}

// A program that the kubeconfig gets its credentials from is to be installed when it is
// missing, as the kubeconfig says.
func TestCredentialHint(t *testing.T) {
	const missing = `getting credentials: exec: executable login-tool not found

It looks like you are trying to use a client-go credential plugin that is not installed.

To learn more about this feature, consult the documentation available at:
      https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins`
	for text, want := range map[string]string{
		"getting credentials: exec: executable login-tool failed with exit code 1": "run it by itself, or log in again",
		missing: "put it into the PATH",
		missing + "\n\nInstall it\n  with: brew install login-tool": "The kubeconfig says: Install it with: brew install login-tool",
	} {
		if got := credentialHint(text); !strings.HasSuffix(got, want) {
			t.Errorf("%q is said of %q, want %q", got, text, want)
		}
	}
}
