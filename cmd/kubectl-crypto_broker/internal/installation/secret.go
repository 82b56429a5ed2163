// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
)

// metadataOnly asks the API server for an object without its content.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// SigningSecret returns the name of the Secret with the signing keys.
func (o Operator) SigningSecret() string {
	return o.Argument("signing-secret-name", o.FullName()+"-signing")
}

// SecretMetadata returns the metadata of a Secret. The content of the Secret stays in the API
// server.
func SecretMetadata(ctx context.Context, client kubernetes.Interface, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	raw, err := apierror.Body(client.CoreV1().RESTClient().Get().Namespace(namespace).Resource("secrets").Name(name).
		SetHeader("Accept", metadataOnly).Do(ctx))
	if err != nil {
		return nil, err
	}
	var found metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &found); err != nil {
		return nil, fmt.Errorf("the metadata of the Secret %s cannot be read: %w", name, err)
	}
	return &found, nil
}

// AnnotateSecret sets an annotation of a Secret. The content of the Secret stays in the API
// server.
func AnnotateSecret(ctx context.Context, client kubernetes.Interface, namespace, name, key, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if err != nil {
		return err
	}
	return client.CoreV1().RESTClient().Patch(types.MergePatchType).Namespace(namespace).Resource("secrets").Name(name).
		SetHeader("Accept", metadataOnly).Body(patch).Do(ctx).Error()
}
