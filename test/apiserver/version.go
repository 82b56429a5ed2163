// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Version returns the version of an API server, such as v1.30.14.
func Version(t testing.TB, config *rest.Config) string {
	t.Helper()
	version, err := discoveryOf(t, config).ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	return version.GitVersion
}

// ServesMutatingPolicies reports whether an API server has the resource
// MutatingAdmissionPolicy in admissionregistration.k8s.io/v1, as Kubernetes 1.36 and newer have.
func ServesMutatingPolicies(t testing.TB, config *rest.Config) bool {
	t.Helper()
	return serves(t, config, admissionregistrationv1.SchemeGroupVersion, "MutatingAdmissionPolicy")
}

// ServesPodCertificates reports whether an API server has the resource PodCertificateRequest in
// certificates.k8s.io/v1, as Kubernetes 1.37 and newer have.
func ServesPodCertificates(t testing.TB, config *rest.Config) bool {
	t.Helper()
	return serves(t, config, certificatesv1.SchemeGroupVersion, "PodCertificateRequest")
}

func serves(t testing.TB, config *rest.Config, version schema.GroupVersion, kind string) bool {
	t.Helper()
	resources, err := discoveryOf(t, config).ServerResourcesForGroupVersion(version.String())
	if apierrors.IsNotFound(err) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range resources.APIResources {
		if each.Kind == kind {
			return true
		}
	}
	return false
}

func discoveryOf(t testing.TB, config *rest.Config) *discovery.DiscoveryClient {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
