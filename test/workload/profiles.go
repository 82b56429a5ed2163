// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"regexp"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// Algorithms are all hash algorithms of the profile format, in an order in which no two
// neighbours are the same.
var Algorithms = []string{"sha3-512", "sha-256", "sha-384", "sha-512", "sha-512/256", "sha3-256", "sha3-384", "shake-128", "shake-256"}

// Hashing returns a profile that offers HashData alone.
func Hashing(profileName, algorithm string) v1alpha1.ProfileSpec {
	return v1alpha1.ProfileSpec{ProfileName: profileName,
		API: v1alpha1.Operations{HashData: &v1alpha1.HashData{HashAlg: algorithm}}}
}

// DowngradeDigest matches what the refusal of a weaker profile names: the annotation that
// allows exactly this change. Its first group is the value of the annotation.
var DowngradeDigest = regexp.MustCompile(regexp.QuoteMeta(v1alpha1.AllowWeakerAnnotation) + `[=:] ?(sha256:[0-9a-f]{64}(,sha256:[0-9a-f]{64})*)`)

// ChangeHash writes another algorithm into a profile of [Hashing], and returns when the writing
// began. If the new algorithm is weaker, it allows that, as an administrator of the cluster may.
// object is the profile. Afterwards it has the written content.
func (c *Cluster) ChangeHash(ctx context.Context, object client.Object, algorithm string) (began time.Time, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		switch profile := object.(type) {
		case *v1alpha1.CryptoProfile:
			profile.Spec.API.HashData.HashAlg = algorithm
		case *v1alpha1.ClusterCryptoProfile:
			profile.Spec.API.HashData.HashAlg = algorithm
		default:
			return fmt.Errorf("found a %T, expected a profile", object)
		}
		began = time.Now()
		err := c.Client.Update(ctx, object)
		if err == nil || !apierrors.IsForbidden(err) {
			return err
		}
		digest := DowngradeDigest.FindStringSubmatch(err.Error())
		if digest == nil {
			return err
		}
		object.SetAnnotations(map[string]string{v1alpha1.AllowWeakerAnnotation: digest[1]})
		began = time.Now()
		return c.Client.Update(ctx, object)
	})
	return began, err
}
