// SPDX-License-Identifier: Apache-2.0

// Package argocd holds what internal/uninstall says of an Application to Argo CD's own engine: gitops-engine reads the options and the waves of
// objects, in the version that Argo CD 3.2.12 has. How Argo CD puts these together when an Application is deleted
// (controller/appcontroller.go, finalizeApplicationDeletion) is written down here, as its controller cannot be had without all of Argo CD.
// A module of its own, so that the plugin does not depend on its modules; later versions of the engine need a newer Go.
package argocd
