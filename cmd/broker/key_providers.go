// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/kmip"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/openbao"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pkcs11"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
)

// keyProviders are the types of key providers that the broker connects to by itself.
var keyProviders = providers.Types{
	providers.KMIP:    kmip.Open,
	providers.OpenBao: openbao.Open,
	providers.PKCS11:  pkcs11.Open,
}

// followProviders opens the key providers of a directory, follows their changes, and logs them.
func followProviders(ctx context.Context, dir string, stack *keys.Stack, logger *slog.Logger) (*providers.Followed, error) {
	return providers.Follow(ctx, dir, keyProviders, stack.Use, providers.LogTo(logger, dir))
}
