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

// keyGatewayTokenSeconds is the lifetime of a token for the key gateway. The kubelet replaces the
// token after four fifths of it.
const keyGatewayTokenSeconds = 3600

// brokerCertificateSeconds is the lifetime of a certificate for the key gateway. The kubelet
// replaces it after a third of it, so the operator may be unavailable for the rest. A stolen
// certificate is useless without a token, which is valid for an hour.
const brokerCertificateSeconds = 24 * 3600

// mayUseKeyProviders reports whether brokers of a namespace with this profile file may need the
// key gateway. A namespace without profiles may get some later.
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
func keyGatewayArguments(address string, certificate bool) []string {
	arguments := []string{
		contract.Argument(contract.KeyGatewayFlag, address),
		contract.Argument(contract.KeyGatewayTokenFlag, path.Join(contract.KeyGatewayDir, contract.KeyGatewayToken)),
		contract.Argument(contract.KeyGatewayAuthoritiesFlag, path.Join(contract.KeyGatewayDir, contract.KeyGatewayAuthorities)),
	}
	if certificate {
		arguments = append(arguments, contract.Argument(contract.KeyGatewayCertificateFlag, path.Join(contract.KeyGatewayDir, contract.KeyGatewayCertificate)))
	}
	return arguments
}

func keyGatewayMount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: contract.KeyGatewayVolume, MountPath: contract.KeyGatewayDir, ReadOnly: true}
}

// keyGatewayVolume returns the volume with the pod's token for the key gateway and the
// authorities of the gateway's certificate. If the template asks for it, the volume also has a
// certificate of the pod. The pod starts without the authorities, which the operator may write
// later. It does not start before the operator has signed the certificate.
func keyGatewayVolume(certificate bool) corev1.Volume {
	sources := []corev1.VolumeProjection{
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
	}
	if certificate {
		sources = append(sources, corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{
			SignerName:           contract.BrokerSigner,
			KeyType:              "ECDSAP256",
			MaxExpirationSeconds: ptr.To[int32](brokerCertificateSeconds),
			CredentialBundlePath: contract.KeyGatewayCertificate,
		}})
	}
	return corev1.Volume{
		Name:         contract.KeyGatewayVolume,
		VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources, DefaultMode: ptr.To[int32](0o444)}},
	}
}
