// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// trustSettings returns the settings for signed sets.
func (c *config) trustSettings() []setting {
	return []setting{
		{
			name: contract.TrustedKeysFlag, env: "CRYPTO_BROKER_TRUSTED_KEYS", kind: "keys", set: someText(&c.trustedKeys),
			usage: "public keys separated by commas, each ed25519: and base64; with them the broker serves a set only if " + signed.FileName + " beside it has a signature of one of them; without them sets need no signature",
		},
		{
			name: contract.ProfilesAudienceFlag, env: "CRYPTO_BROKER_PROFILES_AUDIENCE", kind: "text", set: someText(&c.trust.Audience),
			usage: "audience that signed sets must have; required with --trusted-keys",
		},
		{
			name: contract.LowestRevisionFlag, env: "CRYPTO_BROKER_LOWEST_REVISION", kind: "number", initial: "0", set: revision(&c.trust.Lowest),
			usage: "lowest revision of a signed set that the broker serves",
		},
		{
			name: contract.StateDirFlag, env: "CRYPTO_BROKER_STATE_DIR", kind: "path", set: absolutePath(&c.stateDir),
			usage: "directory that keeps the served signed set, so that no older one is served after a restart; created if missing; nobody else should write there",
		},
	}
}

// readTrust checks the settings of signed sets that depend on each other. It also reads
// the keys, because errors of single settings quote their values, which could be
// private keys by mistake.
func (c *config) readTrust() error {
	if c.trustedKeys == "" {
		var name string
		switch {
		case c.trust.Audience != "":
			name = "--profiles-audience"
		case c.trust.Lowest != 0:
			name = "--lowest-revision"
		case c.stateDir != "":
			name = "--state-dir"
		default:
			return nil
		}
		return program.Usagef("%s is for signed sets, but no key is trusted: expected --trusted-keys or CRYPTO_BROKER_TRUSTED_KEYS as well", name)
	}
	for text := range strings.SplitSeq(c.trustedKeys, ",") {
		key, err := signed.ParseKey(text)
		if err != nil {
			return program.Usagef("--trusted-keys or CRYPTO_BROKER_TRUSTED_KEYS: %v", err)
		}
		c.trust.Keys = append(c.trust.Keys, key)
	}
	if c.trust.Audience == "" {
		return program.Usagef("--profiles-audience or CRYPTO_BROKER_PROFILES_AUDIENCE is required with --trusted-keys: the audience that signed sets must have")
	}
	if err := c.trust.Check(); err != nil {
		return program.Usagef("--trusted-keys, --profiles-audience and --lowest-revision: %v", err)
	}
	return nil
}

func someText(into *string) func(string) error {
	return func(text string) error {
		if text == "" {
			return errors.New("expected some text")
		}
		*into = text
		return nil
	}
}

func revision(into *int64) func(string) error {
	return func(text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return errors.New("expected a number from 0 to 9223372036854775807")
		}
		*into = n
		return nil
	}
}
