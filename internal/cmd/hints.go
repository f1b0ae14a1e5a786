// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"syscall"
)

// credentialFailure begins what client-go says of a credential plugin
// (client-go/plugin/pkg/client/auth/exec, exec.go).
const credentialFailure = "getting credentials: "

// cause drops the dialling details that repeat the server's address, and of what
// a missing credential plugin makes client-go say, all but what is missing.
func cause(err error) string {
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return "the proxy: " + op.Err.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	}
	text, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return text
}

// connectionHint says what to try when a request did not come through to the API
// server: what to look at depends on how far it got.
func connectionHint(err error) string {
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case strings.Contains(err.Error(), credentialFailure):
		return credentialHint(err.Error())
	case errors.As(err, &authority):
		return "something answers there, with a certificate of another authority than the kubeconfig has: " +
			"check its certificate-authority, and that --context names the right cluster"
	case errors.As(err, &hostname):
		return "something answers there, with a certificate for other names: use one of those, or --tls-server-name"
	case errors.As(err, &invalid):
		return "something answers there, with a certificate that is not valid: check its dates, and the clock of this machine"
	case strings.Contains(err.Error(), "remote error: tls: "):
		return "the server does not accept the client certificate of the kubeconfig: check its dates, or log in again"
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "the server does not speak TLS there: check the address in the kubeconfig"
	case errors.As(err, &dns):
		return "the name cannot be looked up: check the address in the kubeconfig, and the network or VPN of this machine"
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return "check HTTPS_PROXY, or proxy-url in the kubeconfig; NO_PROXY leaves the proxy out"
	}
	return "check that the cluster runs and that --kubeconfig and --context name the right one"
}

// credentialHint says what to do about a program that the kubeconfig gets its
// credentials from. What the kubeconfig says about installing it comes last in
// client-go's words, after an address.
func credentialHint(text string) string {
	if !strings.Contains(text, "not found") {
		return "the kubeconfig gets its credentials from that program: run it by itself, or log in again"
	}
	hint := "the kubeconfig gets its credentials from that program: install it, or put it into the PATH"
	if _, after, found := strings.Cut(text, "client-go-credential-plugins"); found {
		if install := strings.Join(strings.Fields(after), " "); install != "" {
			hint += ". The kubeconfig says: " + install
		}
	}
	return hint
}
