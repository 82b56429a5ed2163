// SPDX-License-Identifier: Apache-2.0

// Package catalogue holds the profiles that Crypto Broker distributions ship,
// as a starting point for one's own.
package catalogue

import _ "embed"

// Profiles is the profile file of the catalogue: Default, KSA-MODERATE-2020,
// KSA-ADVANCED-2020, FIPS-140-3-128bit, FIPS-140-3-192bit, FIPS-140-3-256bit.
//
//go:embed Profiles.yaml
var Profiles []byte
