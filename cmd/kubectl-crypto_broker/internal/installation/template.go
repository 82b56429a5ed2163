// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
)

// Page is the maximum number of objects that the plugin reads at a time.
const Page = 500

// ReadTemplate reads the image and the stamp of a broker from an InjectionTemplate.
func ReadTemplate(ctx context.Context, client kubernetes.Interface, name string) (image, stamp string, err error) {
	data, err := apierror.Body(client.CoreV1().RESTClient().Get().AbsPath("/apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, "injectiontemplates", name).Do(ctx))
	if err != nil {
		return "", "", err
	}
	var template v1alpha1.InjectionTemplate
	if err := json.Unmarshal(data, &template); err != nil {
		return "", "", fmt.Errorf("the InjectionTemplate %s cannot be read: %w", name, err)
	}
	var broker corev1.Container
	if err := json.Unmarshal(template.Spec.Container.Raw, &broker); err != nil {
		return "", "", fmt.Errorf("the container in the InjectionTemplate %s cannot be read: %w", name, err)
	}
	return broker.Image, template.Spec.Stamp, nil
}

// RunningVersion returns the version of the running operator: the version that it wrote into the
// InjectionTemplate, or else the version of its chart. It is empty if neither is known.
func RunningVersion(ctx context.Context, client kubernetes.Interface, o Operator) string {
	if _, stamp, err := ReadTemplate(ctx, client, o.Argument("injection-template", o.FullName())); err == nil {
		if version, _, is := strings.Cut(stamp, "/"); is {
			return version
		}
	}
	return o.Version()
}

// SameVersion reports whether two versions are equal. A leading v does not count.
func SameVersion(a, b string) bool {
	return strings.TrimPrefix(a, "v") == strings.TrimPrefix(b, "v")
}
