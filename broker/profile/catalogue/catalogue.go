// SPDX-License-Identifier: Apache-2.0

// Package catalogue has the profiles that come with Crypto Broker.
package catalogue

import _ "embed"

// Profiles is the profile file of the catalogue. It has Default, KSA-MODERATE-2020,
// KSA-ADVANCED-2020, FIPS-140-3-128bit, FIPS-140-3-192bit, FIPS-140-3-256bit.
//
//go:embed Profiles.yaml
var Profiles []byte
