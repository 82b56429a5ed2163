// SPDX-License-Identifier: Apache-2.0

// Package kmsplugin is a KMS plugin for the API server of Kubernetes, version v2 of the protocol
// (k8s.io/kms/apis/v2). The API server makes the keys that encrypt Secrets, and the plugin wraps
// these keys with a key of a key manager.
//
// A ciphertext is a wrapped key in the format of package blob. It names the provider, the key and
// its version, so the plugin can still unwrap with older versions. It is bound to a context of
// the plugin, so the plugin unwraps nothing that was wrapped for another use of the same key.
//
// The id of a key ("key_id") is a hash of provider, key and version. It changes only when new
// data gets another version.
package kmsplugin
