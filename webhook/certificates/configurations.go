// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldManager is the owner of the caBundles in managedFields. Another manager owns the rest of
// the configurations.
const fieldManager = "crypto-broker-operator-certificates"

// configuration is a webhook configuration of either kind.
type configuration struct {
	kind   string
	object client.Object
	// loss describes the effect while the object does not exist.
	loss string
	// absent is set if the object does not exist.
	absent bool
	// bundles returns pointers to the caBundles of all webhooks in the object.
	bundles func() []*[]byte
}

func mutating(name string) *configuration {
	object := &admissionregistrationv1.MutatingWebhookConfiguration{}
	object.Name = name
	return &configuration{
		kind:   "MutatingWebhookConfiguration",
		object: object,
		loss:   "the API server refuses pods that ask for a broker, unless policies inject it",
		bundles: func() (all []*[]byte) {
			for i := range object.Webhooks {
				all = append(all, &object.Webhooks[i].ClientConfig.CABundle)
			}
			return all
		},
	}
}

func validating(name string) *configuration {
	object := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	object.Name = name
	return &configuration{
		kind:   "ValidatingWebhookConfiguration",
		object: object,
		loss:   "the API server admits profiles that were not checked",
		bundles: func() (all []*[]byte) {
			for i := range object.Webhooks {
				all = append(all, &object.Webhooks[i].ClientConfig.CABundle)
			}
			return all
		},
	}
}

// read reads the object from the API server, not from a cache.
func (c *configuration) read(ctx context.Context, reader client.Reader) error {
	err := reader.Get(ctx, client.ObjectKeyFromObject(c.object), c.object)
	if apierrors.IsNotFound(err) {
		c.absent = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the %s %q: %w", c.kind, c.object.GetName(), err)
	}
	return nil
}

// trusts reports whether every webhook of the object holds the certificate.
func (c *configuration) trusts(certificate *x509.Certificate) bool {
	if c.absent {
		return false
	}
	for _, bundle := range c.bundles() {
		if !contains(parseBundle(*bundle), certificate) {
			return false
		}
	}
	return true
}

// authorities returns the authorities in the bundles.
func (c *configuration) authorities() (all []*x509.Certificate) {
	for _, bundle := range c.bundles() {
		all = append(all, parseBundle(*bundle)...)
	}
	return all
}

// write sets the bundle in every webhook, and reports whether any bundle has changed. It writes
// only caBundles, and fails with a conflict if the object has changed since it was read.
func (c *configuration) write(ctx context.Context, writer client.Writer, bundle []byte) (changed bool, err error) {
	if c.absent {
		return false, nil
	}
	before := c.object.DeepCopyObject().(client.Object)
	var found [][]byte
	for _, current := range c.bundles() {
		found = append(found, *current)
		if !bytes.Equal(*current, bundle) {
			*current, changed = bundle, true
		}
	}
	if !changed {
		return false, nil
	}
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := writer.Patch(ctx, c.object, patch, client.FieldOwner(fieldManager)); err != nil {
		// The object has the new bundles only if the write succeeds, because a later call of
		// trusts has to see the bundles of the API server.
		for i, current := range c.bundles() {
			*current = found[i]
		}
		return false, fmt.Errorf("write the caBundle of the %s %q: %w", c.kind, c.object.GetName(), err)
	}
	return true, nil
}
