// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Server is what is known of an API server by its version. What can be asked of the
// server itself is asked: this is for the rest. The zero value is a server of which
// nothing is known.
type Server struct {
	version *version.Version
	// name is the version as the server says it.
	name string
}

// ServerOf is the server that says that it has the version, as in "v1.36.3"; of one that
// cannot be read nothing is known.
func ServerOf(gitVersion string) Server {
	v, err := version.ParseGeneric(gitVersion)
	if err != nil {
		return Server{}
	}
	return Server{v, gitVersion}
}

// marks are what the versions of providers' servers have in them, by the provider, as in
// v1.33.1-eks-c417bb3 and v1.33.1-gke.1584000.
var marks = map[string]string{"EKS": "-eks-", "GKE": "-gke."}

// Version is what the server says, empty when that is not known.
func (s Server) Version() string { return s.name }

// IsNot reports whether the server is certain not to be one of the provider's, by its
// version. Of a provider whose servers cannot be told, and a server of which nothing
// is known, it is not.
func (s Server) IsNot(provider string) bool {
	mark := marks[provider]
	return s.version != nil && mark != "" && !strings.Contains(s.name, mark)
}

func (s Server) atLeast(v string) bool {
	return s.version != nil && s.version.AtLeast(version.MustParseGeneric(v))
}

// ListsFromCache reports whether the server answers a list that is not older than
// another one from its cache without fail (the feature ConsistentListFromCache, 1.31), and
// whole objects while it encodes them (StreamingCollectionEncodingToProtobuf, 1.33; metadata
// it encodes first). What is not known is no.
func (s Server) ListsFromCache() bool { return s.atLeast("1.33.0") }

// PodsFirst reports whether a namespace is certain to be emptied of its pods before
// anything else in it is deleted (KEP-5080: a feature gate that is off by default below
// 1.33).
func (s Server) PodsFirst() bool { return s.atLeast("1.33.0") }

// ChangesWithoutNamespace reports whether objects can be changed whose namespace does
// not exist: since 1.37; older servers answer that the namespace is not found
// (apiserver/pkg/admission/plugin/namespace/lifecycle, Admit). What is not known is no.
func (s Server) ChangesWithoutNamespace() bool { return s.atLeast("1.37.0") }

// DeletesUnreadable reports whether the server deletes what it cannot read from etcd, if
// it is asked to expressly (KEP-3926: a feature gate that is on since 1.37).
func (s Server) DeletesUnreadable() bool { return s.atLeast("1.37.0") }

// CollectsWithoutAll reports whether the garbage collector starts although a type can
// not be listed: since 1.32 (kubernetes/kubernetes#125796). Below, one that was started
// anew waits for that type for ever. What is not known is yes.
func (s Server) CollectsWithoutAll() bool { return s.version == nil || s.atLeast("1.32.0") }

// TakesEndpoints reports whether the server deletes the Endpoints of a Service with it:
// below 1.37 (registry/core/service/storage, afterDelete). Since then that is left to the
// endpoints controller. What is not known is yes.
func (s Server) TakesEndpoints() bool { return !s.atLeast("1.37.0") }
