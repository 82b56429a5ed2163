// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"bytes"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// keyGatewayTokenSeconds is for how long a token for the key gateway is valid. The kubelet
// replaces it when four fifths of the time have passed.
const keyGatewayTokenSeconds = 3600

// mayUseKeyProviders reports whether brokers of a namespace with this profile file may need
// the key gateway. A namespace without profiles may get them after its pods.
func mayUseKeyProviders(file []byte) bool {
	if len(file) == 0 || profile.Empty(file) {
		return true
	}
	if !bytes.Contains(file, []byte("KeyIds")) {
		return false // most files, without reading them
	}
	document, _ := profile.Parse(profile.FileName, file) // the broker reports what is wrong with it
	return document != nil && profile.NamesKeyProviders(document.Profiles)
}

// keyGatewayArguments are the arguments of a broker that can call the key gateway.
func keyGatewayArguments(address string) []string {
	return []string{
		contract.Argument(contract.KeyGatewayFlag, address),
		contract.Argument(contract.KeyGatewayTokenFlag, path.Join(contract.KeyGatewayDir, contract.KeyGatewayToken)),
		contract.Argument(contract.KeyGatewayAuthoritiesFlag, path.Join(contract.KeyGatewayDir, contract.KeyGatewayAuthorities)),
	}
}

func keyGatewayMount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: contract.KeyGatewayVolume, MountPath: contract.KeyGatewayDir, ReadOnly: true}
}

// keyGatewayVolume returns the volume with the pod's token for the key gateway, and with the
// authorities of the gateway's certificate. The pod starts without the authorities, which the
// operator may write later.
func keyGatewayVolume() corev1.Volume {
	return corev1.Volume{
		Name: contract.KeyGatewayVolume,
		VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
					Audience:          contract.KeyGatewayAudience,
					ExpirationSeconds: ptr.To[int64](keyGatewayTokenSeconds),
					Path:              contract.KeyGatewayToken,
				}},
				{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: v1alpha1.ProfilesConfigMap},
					Items:                []corev1.KeyToPath{{Key: contract.KeyGatewayAuthorities, Path: contract.KeyGatewayAuthorities}},
					Optional:             ptr.To(true),
				}},
			},
			DefaultMode: ptr.To[int32](0o444),
		}},
	}
}
