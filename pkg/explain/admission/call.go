// SPDX-License-Identifier: Apache-2.0

package admission

import "regexp"

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
	words *regexp.Regexp
	wrong WrongCall
}{
	{regexp.MustCompile(`x509: |tls: `), WrongCertificate},
	{regexp.MustCompile(`no service port \S+ found`), WrongPort},
	{regexp.MustCompile(`connection refused`), NotListening},
	{regexp.MustCompile(`could not find the requested resource|cannot post path|expected webhook response|unknown object type|couldn't get version/kind`), WrongPath},
	{regexp.MustCompile(`deadline exceeded|i/o timeout|Client\.Timeout`), Late},
}

// CallError says what is wrong with a call by the words with which it failed.
func CallError(message string) WrongCall {
	for _, e := range callErrors {
		if e.words.MatchString(message) {
			return e.wrong
		}
	}
	return OtherCall
}
