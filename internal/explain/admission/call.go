// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"regexp"

	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
)

// WrongCall says what is wrong with the call of a webhook that something could answer.
type WrongCall int

// What can be wrong.
const (
	// OtherCall: the message tells nothing of the kind.
	OtherCall WrongCall = iota
	// WrongCertificate: the certificate is not one of the authority that is trusted, or
	// not for the name, or is out of date.
	WrongCertificate
	// WrongPort: the service has no such port.
	WrongPort
	// NotListening: nothing listens at the port.
	NotListening
	// WrongPath: something else answers.
	WrongPath
	// Late: there was no answer in time.
	Late
)

// callErrors are the words of Go's net and crypto packages, and of
// k8s.io/apiserver/pkg/util/webhook and pkg/util/proxy.
var callErrors = []struct {
	words func() *regexp.Regexp
	wrong WrongCall
}{
	{pattern.New(`x509: |tls: `), WrongCertificate},
	{pattern.New(`no service port \S+ found`), WrongPort},
	{pattern.New(`connection refused`), NotListening},
	{pattern.New(`could not find the requested resource|cannot post path|expected webhook response|unknown object type|couldn't get version/kind`), WrongPath},
	{pattern.New(`deadline exceeded|i/o timeout|Client\.Timeout`), Late},
}

// CallError says what is wrong with a call by the words with which it failed.
func CallError(message string) WrongCall {
	for _, e := range callErrors {
		if e.words().MatchString(message) {
			return e.wrong
		}
	}
	return OtherCall
}
