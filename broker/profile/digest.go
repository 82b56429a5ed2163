// SPDX-License-Identifier: Apache-2.0

package profile

import "github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"

// Digest identifies a set by the bytes of its file: "sha256:" and 64
// lower-case hexadecimal digits.
func Digest(data []byte) string { return signed.Digest(data) }
