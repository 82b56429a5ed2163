// SPDX-License-Identifier: Apache-2.0

package effective

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

// Path returns the path of an object in the API server.
func Path(source downgrade.Source) []string {
	path := []string{"/apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version}
	if source.Namespace != "" {
		path = append(path, "namespaces", source.Namespace)
	}
	return append(path, source.Resource(), source.Name)
}

// Annotate writes an annotation of an object.
func Annotate(ctx context.Context, client kubernetes.Interface, source downgrade.Source, key, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if err != nil {
		return err
	}
	return client.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(Path(source)...).
		Param("fieldManager", "kubectl-crypto_broker").Body(patch).Do(ctx).Error()
}
