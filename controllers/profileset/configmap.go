// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
)

// configMapLabels are on every ConfigMap of the operator.
var configMapLabels = map[string]string{
	"app.kubernetes.io/name":       "crypto-broker",
	"app.kubernetes.io/component":  "profiles",
	"app.kubernetes.io/part-of":    "crypto-broker",
	"app.kubernetes.io/managed-by": v1alpha1.FieldManager,
}

// configMaps reads and writes the ConfigMap of profiles in each namespace.
type configMaps struct {
	cached     client.Client
	live       client.Reader
	namespaces *state.Store
}

// read returns the ConfigMap of a namespace, or nil if there is none. It never returns a
// ConfigMap that is older than the operator's last write.
func (c *configMaps) read(ctx context.Context, namespace *corev1.Namespace) (*corev1.ConfigMap, error) {
	key := client.ObjectKey{Namespace: namespace.Name, Name: v1alpha1.ProfilesConfigMap}
	found, err := get(ctx, c.cached, key)
	if err != nil {
		return nil, err
	}
	version := ""
	if found != nil {
		version = found.ResourceVersion
	}
	pending := c.namespaces.Of(namespace).PendingVersion
	if pending == "" {
		return found, nil
	}
	if state.IsBehind(version, pending) {
		found, err = get(ctx, c.live, key)
		if err != nil || found != nil {
			return found, err
		} // otherwise somebody has deleted it in the meantime
	}
	c.setPending(namespace, "")
	return found, nil
}

func get(ctx context.Context, reader client.Reader, key client.ObjectKey) (*corev1.ConfigMap, error) {
	var found corev1.ConfigMap
	if err := reader.Get(ctx, key, &found); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	return &found, nil
}

// isAsDesired reports whether a ConfigMap holds only these files, because each further key would
// be a file in the broker's directory. Annotations with an empty value must be absent.
func isAsDesired(found *corev1.ConfigMap, files, annotations map[string]string) bool {
	if found == nil || len(found.BinaryData) != 0 || found.Immutable != nil || !maps.Equal(found.Data, files) {
		return false
	}
	for key, value := range annotations {
		if found.Annotations[key] != value {
			return false
		}
	}
	for key, value := range configMapLabels {
		if found.Labels[key] != value {
			return false
		}
	}
	return true
}

// write writes these files into the ConfigMap of a namespace. found is the result of read. If
// somebody else changed that ConfigMap in between, such as an administrator or a former leader,
// write returns an error, and the set is decided again. If somebody else created or restored it
// in between, write replaces its content.
func (c *configMaps) write(ctx context.Context, namespace *corev1.Namespace, found *corev1.ConfigMap, files, annotations map[string]string) error {
	if found != nil && found.Immutable != nil && *found.Immutable {
		log.FromContext(ctx).Info("replacing an immutable ConfigMap; pods that mounted it see the new one only after a restart")
		if _, err := c.remove(ctx, namespace, found); err != nil {
			return err
		}
		found = nil
	}
	if found != nil {
		err := c.update(ctx, namespace, found, files, annotations)
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	desired := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: v1alpha1.ProfilesConfigMap}}
	fill(desired, files, annotations)
	err := c.cached.Create(ctx, desired, client.FieldOwner(v1alpha1.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		if found, err = get(ctx, c.live, client.ObjectKeyFromObject(desired)); err != nil {
			return err
		}
		if found == nil {
			return fmt.Errorf("ConfigMap %s/%s was created and deleted by somebody else meanwhile", namespace.Name, v1alpha1.ProfilesConfigMap)
		}
		return c.update(ctx, namespace, found, files, annotations)
	}
	return c.wrote(namespace, desired, err)
}

func (c *configMaps) update(ctx context.Context, namespace *corev1.Namespace, found *corev1.ConfigMap, files, annotations map[string]string) error {
	desired := found.DeepCopy()
	fill(desired, files, annotations)
	return c.wrote(namespace, desired, c.cached.Update(ctx, desired, client.FieldOwner(v1alpha1.FieldManager)))
}

// remove deletes the ConfigMap unless another ConfigMap has its name by now. It reports false if
// the ConfigMap was deleted before, which the cache may not know yet.
func (c *configMaps) remove(ctx context.Context, namespace *corev1.Namespace, found *corev1.ConfigMap) (deleted bool, err error) {
	err = c.cached.Delete(ctx, found, client.Preconditions{UID: &found.UID})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("delete ConfigMap %s/%s: %w", found.Namespace, found.Name, err)
	}
	c.setPending(namespace, "")
	return err == nil, nil
}

// setPending stores the version of a write until the cache has it. "" removes it.
func (c *configMaps) setPending(namespace *corev1.Namespace, version string) {
	c.namespaces.Update(namespace, func(known *state.Namespace) { known.PendingVersion = version })
}

func (c *configMaps) wrote(namespace *corev1.Namespace, written *corev1.ConfigMap, err error) error {
	if err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", written.Namespace, written.Name, err)
	}
	c.setPending(namespace, written.ResourceVersion)
	return nil
}

// fill sets the files of a ConfigMap, and removes all others.
func fill(c *corev1.ConfigMap, files, annotations map[string]string) {
	c.Immutable = nil
	c.BinaryData = nil
	c.Data = files
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	maps.Copy(c.Labels, configMapLabels)
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	maps.Copy(c.Annotations, annotations)
	maps.DeleteFunc(c.Annotations, func(key, value string) bool {
		_, ours := annotations[key]
		return ours && value == ""
	})
}

// files returns the keys of the ConfigMap with a set and its signature. There are none if the set
// is nil. Brokers that may use key providers also get the authorities of the key gateway's
// certificate, which are nil if they are not known.
func files(data, signature, authorities []byte) map[string]string {
	if data == nil {
		return nil
	}
	files := map[string]string{profile.FileName: string(data), signed.FileName: string(signature)}
	if authorities != nil {
		files[contract.KeyGatewayAuthorities] = string(authorities)
	}
	return files
}
