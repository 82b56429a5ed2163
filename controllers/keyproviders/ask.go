// SPDX-License-Identifier: Apache-2.0

package keyproviders

import (
	"context"
	"net/netip"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
)

// AskBy returns an Ask that uses a client for the status ports of pods.
func AskBy(client *confirm.Client) Ask {
	return func(ctx context.Context, address netip.AddrPort, etag string) (*providerreport.Report, string, error) {
		body, newest, err := client.Fetch(ctx, confirm.Question{
			Whom: "the key gateway", Address: address, Path: contract.KeyProvidersPath, MaxBody: providerreport.MaxSize, ETag: etag,
		})
		if err != nil || body == nil {
			return nil, newest, err
		}
		report, err := providerreport.Parse(body)
		return report, newest, err
	}
}
