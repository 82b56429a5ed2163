// SPDX-License-Identifier: Apache-2.0

// Package wrap wraps and unwraps keys with a key that is in the memory of the broker: with AES,
// with RSA-OAEP, and with HPKE for elliptic curves and ML-KEM. Package algorithm has the
// algorithms. The package does not know profiles, contexts and where keys are kept.
//
// A wrapped key can be bound to additional data, which is then needed to unwrap it. AES key wrap
// (RFC 3394 and RFC 5649) cannot do that, so it refuses additional data.
//
// A key that was unwrapped with AES was wrapped by somebody who has the AES key. Anybody who has
// a public key can wrap with RSA-OAEP or HPKE, so a key that was unwrapped with them may come
// from anybody.
package wrap
