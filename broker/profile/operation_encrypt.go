// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// encryptDataRow are the operations EncryptData and DecryptData.
var encryptDataRow = SectionRow{
	Name: "EncryptData",
	Operations: []OperationRow{
		{Operation: OpEncryptData, Name: "EncryptData", Quick: true, KeyTasks: DescribeKey | EncryptWithKey, Newest: true, Functions: []string{"encrypt"}},
		{Operation: OpDecryptData, Name: "DecryptData", Quick: true, KeyTasks: DescribeKey | DecryptWithKey, Functions: []string{"decrypt"}},
	},
	Refusals: keyRefusals,
	of:       func(a *API) section { return sectionOf(a.EncryptData) },
	policy:   func(c *Compiled) policy { return c.cipher },
	primitives: func(u Use) ([][]algorithm.Primitive, bool) {
		cipher, known := algorithm.FindCipher(u.Algorithm)
		if !known || u.Keys[0].Algorithm != AESKey || !slices.Contains(cipher.KeySizes(), u.Keys[0].Bits) {
			return nil, false
		}
		return oneHalf(algorithm.AESPrimitive(u.Keys[0].Bits)), true
	},
	objection: func(u Use) string {
		if u.Operation == OpEncryptData && u.GivenNonce {
			return "the caller makes the nonce"
		}
		cipher, _ := algorithm.FindCipher(u.Algorithm)
		return objection(u.Algorithm, cipher.Approval())
	},
}

// EncryptData is the policy of the operations EncryptData and DecryptData.
type EncryptData struct {
	EncryptAlg string `yaml:"EncryptAlg"`
	// KeySize is in bits.
	KeySize int `yaml:"KeySize"`
	// NonceStrategy is "user-provided" or "random".
	NonceStrategy string `yaml:"NonceStrategy,omitempty"`
	// TagLength is in bits and has no effect, as in released brokers.
	TagLength int `yaml:"TagLength,omitempty"`
	// ShortTagLength is the length of a truncated tag in bits. If it is absent, the tag has its
	// full length.
	ShortTagLength int           `yaml:"ShortTagLength,omitempty"`
	KeyIDs         []keyrules.ID `yaml:"KeyIds,omitempty"`
}

var nonceStrategies = []string{"user-provided", "random"}

func (e *EncryptData) validate(v validator, at yamlfile.Place) {
	cipher := e.cipher()
	v.Enum(at.Field("EncryptAlg"), at, e.EncryptAlg, algorithm.Ciphers())
	v.Size(at.Field("KeySize"), at, e.KeySize, cipher.KeySizes(), true)
	if e.NonceStrategy != "" || v.Present(at.Field("NonceStrategy")) {
		v.Enum(at.Field("NonceStrategy"), at, e.NonceStrategy, nonceStrategies)
	}
	v.Size(at.Field("TagLength"), at, e.TagLength, cipher.TagSizes(), false)
	v.Size(at.Field("ShortTagLength"), at, e.ShortTagLength, cipher.TagSizes()[:len(cipher.TagSizes())-1], false)
	keyrules.CheckIDs(v.Report, at.Field("KeyIds"), e.KeyIDs)
	for i := range e.KeyIDs {
		where := at.Field("KeyIds").Index(i)
		if e.KeyIDs[i].ID == keyrules.AnyID {
			continue // the key "*" has no pin either
		}
		if pin := where.Field("SPKISHA256"); v.Present(pin) || e.KeyIDs[i].SPKISHA256 != "" {
			v.Add(pin, where, "an AES key has no public key that could be pinned, expected no SPKISHA256")
		}
	}
}

func (e *EncryptData) format() algorithm.Format {
	return max(algorithm.CipherFormat(e.EncryptAlg), formatOf(len(e.KeyIDs) > 0 || e.ShortTagLength != 0 || e.randomNonce()))
}

func (e *EncryptData) compile(c *Compiled, o compileOptions) {
	c.cipher = &CipherPolicy{
		cipher:      e.cipher(),
		keySize:     e.KeySize / 8,
		tagSize:     e.TagBits() / 8,
		randomNonce: e.randomNonce(),
		keys:        keyrules.NewPolicy(e.KeyIDs, o.manager.rulesWithFile()),
	}
}

// Cipher returns the policy of EncryptData and DecryptData, or nil if the profile does not offer
// them.
func (c *Compiled) Cipher() *CipherPolicy { return c.cipher }

func (e *EncryptData) judge() []judgement {
	cipher := e.cipher()
	bits, limit := cipher.Strength(e.KeySize)
	parts := []Strength{{Bits: bits, Limit: limit}}
	if tag := e.TagBits(); tag < cipher.WholeTag() {
		parts = append(parts, Strength{Bits: tag, Limit: fmt.Sprintf("tags of %d bits", tag)})
	}
	decrypt := ""
	if why := cipher.Approval().Objection(); why != "" {
		decrypt = "EncryptAlg is " + cipher.String() + ", " + why
	}
	encrypt := decrypt
	if encrypt == "" && !e.randomNonce() {
		encrypt = "the caller makes the nonce, which FIPS 140-3 does not approve for AES-GCM (implementation guidance C.H); choose NonceStrategy random"
	}
	return []judgement{{cipher.String(), parts, encrypt}, {cipher.String(), parts, decrypt}}
}

func (e *EncryptData) listedKeys() []keyrules.ID { return e.KeyIDs }

func (e *EncryptData) warn(w warner, at yamlfile.Place, p *Profile, manager *KMS) {
	if e.TagLength != 0 && e.TagLength < e.cipher().WholeTag() {
		w.Add(at.Field("TagLength"), at, "is %d and has no effect, as in released brokers: tags have %d bits; ShortTagLength asks for shorter ones", e.TagLength, e.TagBits())
	}
	if _, _, ok := manager.settingsFile(); !ok {
		w.external(at, e.KeyIDs, manager)
	}
	w.unlisted(at, e.KeyIDs, p, manager)
}

// cipher returns the algorithm. For an unknown name it returns the algorithm whose sizes problems
// name.
func (e *EncryptData) cipher() algorithm.Cipher {
	if c, known := algorithm.FindCipher(e.EncryptAlg); known {
		return c
	}
	return algorithm.AESGCM
}

func (e *EncryptData) randomNonce() bool { return strings.EqualFold(e.NonceStrategy, "random") }

// TagBits returns the length of the authentication tag in bits. Released brokers use full tags
// whatever the TagLength, and this broker has to decrypt their data.
func (e *EncryptData) TagBits() int { return cmp.Or(e.ShortTagLength, e.cipher().WholeTag()) }

// CipherPolicy is the compiled policy of EncryptData and DecryptData.
type CipherPolicy struct {
	cipher      algorithm.Cipher
	keySize     int
	tagSize     int
	randomNonce bool
	keys        *keyrules.Policy
}

// Algorithm returns the name of the algorithm in profiles and replies.
func (c *CipherPolicy) Algorithm() string { return c.cipher.String() }

// KeySize returns the size of the key in bytes: 16, 24 or 32.
func (c *CipherPolicy) KeySize() int { return c.keySize }

// TagSize returns the size of the authentication tag in bytes, 12 to 16.
func (c *CipherPolicy) TagSize() int { return c.tagSize }

// RandomNonce reports whether the broker makes the nonce. Otherwise the caller makes it, and is
// responsible for never using a nonce twice with the same key.
func (c *CipherPolicy) RandomNonce() bool { return c.randomNonce }

// Keys returns which of the broker's keys may be used. It is nil if requests bring their keys.
func (c *CipherPolicy) Keys() *keyrules.Policy { return c.keys }

func (c *CipherPolicy) effect(u Use) (Effect, string) {
	key := u.Keys[0]
	switch {
	case c.Keys().Refusal(key.ID) != "":
		return refused(c.Keys().Refusal(key.ID))
	case key.Bits != 8*c.KeySize():
		return Refused, fmt.Sprintf("keys of %d bits, expected %d bits", key.Bits, 8*c.KeySize())
	case u.Operation == OpEncryptData && u.GivenNonce && c.RandomNonce():
		return Refused, "the caller gives the nonce, expected none: the broker makes it"
	case u.Operation == OpEncryptData && !u.GivenNonce && !c.RandomNonce():
		return Refused, "the caller gives no nonce, expected one"
	case u.Operation == OpDecryptData && int(u.TagSize) != c.TagSize():
		return Refused, fmt.Sprintf("tags of %d bits, expected %d bits", 8*int(u.TagSize), 8*c.TagSize())
	case int(u.TagSize) != c.TagSize():
		return Changed, fmt.Sprintf("tags of %d bits instead of %d bits", 8*c.TagSize(), 8*int(u.TagSize))
	}
	return changed(u.Algorithm, c.Algorithm())
}

func (c *CipherPolicy) extremes(op Operation) (all []Use) {
	u := Use{Operation: op, Algorithm: c.Algorithm(), TagSize: uint8(c.TagSize()), GivenNonce: op == OpEncryptData && !c.RandomNonce()}
	for _, id := range c.keys.Sources() {
		u.Keys[0] = UsedKey{Algorithm: AESKey, Bits: 8 * c.KeySize(), ID: id}
		all = append(all, u)
	}
	return all
}
