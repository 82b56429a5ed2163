// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"

	"google.golang.org/protobuf/encoding/protowire"
)

// The numbers of fields that are repeated here.
const (
	signKeySource     = 2
	signMetadata      = 5
	componentKeys     = 2
	componentKey      = 1
	certificatePoints = 9
	hashMetadata      = 3
	metadataTrace     = 3
	unknownField      = 100
)

// repeatedFields are messages that repeat a short field very often. Decoded, each field
// takes more of the broker's memory than its bytes.
func repeatedFields() []attack {
	emptyKeys := func(size int) []byte {
		keys := repeated(emptyField(componentKey), size)
		return field(profileNamed("Default"), signKeySource, field(nil, componentKeys, keys))
	}
	withMetadata := func(metadata []byte) []byte { return field(hashMessage(32), hashMetadata, metadata) }
	return []attack{
		{
			name: "empty-keys", about: "one caller of SignData with 1.5 MB of empty component keys", tested: true,
			run: repeating(1, 1, methodSign, func() []byte { return emptyKeys(1500 << 10) }),
		},
		{
			name: "empty-keys-verify", about: "ten callers of VerifyData with 3.9 MB of empty component keys",
			run: repeating(1, 10, methodVerify, func() []byte { return emptyKeys(halfSentSize) }),
		},
		{
			name: "empty-points", about: "ten callers of SignCertificate with 2 MB of empty CRL distribution points", tested: true,
			run: repeating(1, 10, methodCertificate, func() []byte {
				return append(encoded(certificateRequest()), repeated(emptyField(certificatePoints), 2000<<10)...)
			}),
		},
		{
			name: "metadata-unknown", about: "16 callers of HashData whose metadata is 1 MiB of fields that nobody knows", tested: true,
			run: repeating(1, 16, methodHash, func() []byte { return withMetadata(repeated(emptyField(unknownField), mebibyte-100)) }),
		},
		{
			name: "metadata-traces", about: "16 callers of HashData whose metadata is 1 MiB of empty trace contexts",
			run: repeating(1, 16, methodHash, func() []byte { return withMetadata(repeated(emptyField(metadataTrace), mebibyte-100)) }),
		},
		{
			name: "metadata-repeated", about: "16 callers of SignData with 3.9 MB of empty metadata",
			run: repeating(1, 16, methodSign, func() []byte {
				return append(encoded(signRequest("Default", nil)), repeated(emptyField(signMetadata), halfSentSize)...)
			}),
		},
		{
			name: "metadata-nested", about: "16 callers of HashData whose metadata has groups in groups, 1 MiB of them",
			run: repeating(1, 16, methodHash, func() []byte { return withMetadata(nestedGroups(mebibyte - 100)) }),
		},
		{
			name: "unknown-fields", about: "16 callers of Health/Check and ListProfiles with 3.9 MB of fields that nobody knows", tested: true,
			run: func(ctx context.Context, t *target) error {
				message := repeated(emptyField(unknownField), halfSentSize)
				go func() {
					_ = callers(ctx, t, 1, 8, methodHealth, message) // only half of the fields, because the other half shows the same
				}()
				return callers(ctx, t, 1, 8, methodPolicy, message)
			},
		},
	}
}

// nestedGroups returns groups in groups, as deep as fits into size bytes. A parser may
// give up early.
func nestedGroups(size int) []byte {
	begin := protowire.AppendTag(nil, unknownField, protowire.StartGroupType)
	end := protowire.AppendTag(nil, unknownField, protowire.EndGroupType)
	depth := size / (len(begin) + len(end))
	return append(bytes.Repeat(begin, depth), bytes.Repeat(end, depth)...)
}
