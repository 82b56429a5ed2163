// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
)

// memoryAudience is appended to a namespace's audience in the statement about its memory, so that
// no broker accepts the memory as a set. The memory is the part of the ConfigMap's annotations
// about removed profiles.
const memoryAudience = "/memory"

// memoryText returns the text that the signature of a memory covers: the annotations with the
// memory, and the digest of the set in the ConfigMap, which is empty without a set.
func memoryText(digest string, annotations map[string]string) []byte {
	text, err := json.Marshal([]string{digest, annotations[v1alpha1.RemovedProfilesAnnotation], annotations[v1alpha1.ProfilesHistoryAnnotation]})
	if err != nil {
		panic("profileset: " + err.Error()) // texts
	}
	return text
}

// memoryIn returns the text that the signature in a ConfigMap should cover.
func memoryIn(found *corev1.ConfigMap) []byte {
	digest := ""
	if file, has := found.Data[profile.FileName]; has {
		digest = profile.Digest([]byte(file))
	}
	return memoryText(digest, found.Annotations)
}

// memoryInPlace returns the statement about the memory in a ConfigMap. It returns
// false if the operator has signed none for this namespace and this memory.
func (s *sealer) memoryInPlace(ctx context.Context, namespace *corev1.Namespace, found *corev1.ConfigMap) (signed.Statement, bool, error) {
	if found == nil || found.Annotations[v1alpha1.MemorySignatureAnnotation] == "" {
		return signed.Statement{}, false, nil
	}
	ring, audience, err := s.trust(ctx, namespace)
	if err != nil {
		return signed.Statement{}, false, err
	}
	trust := signed.Trust{Keys: ring.Known(), Audience: audience + memoryAudience}
	statement, err := trust.Verify(memoryIn(found), []byte(found.Annotations[v1alpha1.MemorySignatureAnnotation]))
	return statement, err == nil, nil // why it is not valid does not matter: it is overwritten
}
