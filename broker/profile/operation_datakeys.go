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

// dataKeysRow are the operations on data keys. UnwrapBatch is UnwrapKey of several keys.
var dataKeysRow = SectionRow{
	Name: "DataKeys",
	Operations: []OperationRow{
		{Operation: OpGenerateDataKey, Name: "GenerateDataKey", KeyTasks: DescribeKey | WrapWithKey, Functions: []string{"keygen", "encrypt"}},
		{Operation: OpWrapKey, Name: "WrapKey", KeyTasks: DescribeKey | WrapWithKey, Functions: []string{"encrypt"}},
		{Operation: OpUnwrapKey, Name: "UnwrapKey", KeyTasks: DescribeKey | UnwrapWithKey, Functions: []string{"decrypt"}},
		{Operation: OpRewrapKey, Name: "RewrapKey", KeyTasks: DescribeKey | WrapWithKey | UnwrapWithKey, Functions: []string{"encrypt", "decrypt"}},
		{Operation: OpGetPublicKey, Name: "GetPublicKey", KeyTasks: DescribeKey, Functions: []string{"other"}},
		{Operation: OpEncryptStream, Name: "EncryptStream", KeyTasks: DescribeKey | WrapWithKey, Functions: []string{"keygen", "encrypt"}},
		{Operation: OpDecryptStream, Name: "DecryptStream", KeyTasks: DescribeKey | UnwrapWithKey, Functions: []string{"decrypt"}},
	},
	Refusals:   keyRefusals,
	of:         func(a *API) section { return sectionOf(a.DataKeys) },
	policy:     func(c *Compiled) policy { return c.dataKeys },
	primitives: dataKeyPrimitives,
	objection:  dataKeyObjection,
}

// DataKeys is the policy of the operations on data keys, which are wrapped with keys of the
// broker.
type DataKeys struct {
	// WrapAlgs are the wrapping algorithms. A wrapping key wraps with the first one that it
	// has, and unwraps with all of them.
	WrapAlgs []string `yaml:"WrapAlgs"`
	// KeySize is the size of generated data keys in bits.
	KeySize int `yaml:"KeySize"`
	// Context is "required", "optional" or "none". If it is absent, it is "optional".
	Context string `yaml:"Context,omitempty"`
	// KeyIDs are the wrapping keys.
	KeyIDs []keyrules.ID `yaml:"KeyIds"`
}

// The values of Context.
const (
	contextRequired = "required"
	contextOptional = "optional"
	contextNone     = "none"
)

var contexts = []string{contextRequired, contextOptional, contextNone}

func (d *DataKeys) validate(v validator, at yamlfile.Place) {
	if d.Context != "" || v.Present(at.Field("Context")) {
		v.Enum(at.Field("Context"), at, d.Context, contexts)
	}
	d.validateAlgorithms(v, at)
	v.Size(at.Field("KeySize"), at, d.KeySize, algorithm.AESGCM.KeySizes(), true)
	if len(d.KeyIDs) == 0 && !v.Present(at.Field("KeyIds")) {
		v.Required(at.Field("KeyIds"), at, "at least one key, because data keys are wrapped with keys of the broker")
	}
	keyrules.CheckIDs(v.Report, at.Field("KeyIds"), d.KeyIDs)
}

func (d *DataKeys) validateAlgorithms(v validator, at yamlfile.Place) {
	list := at.Field("WrapAlgs")
	if len(d.WrapAlgs) == 0 {
		v.Required(list, at, "at least one of "+yamlfile.List(algorithm.Wrappings()))
	}
	var before []algorithm.Wrapping
	for i, name := range d.WrapAlgs {
		v.Enum(list.Index(i), list, name, algorithm.Wrappings())
		with, known := algorithm.FindWrapping(name)
		switch {
		case !known:
			continue
		case slices.Contains(before, with):
			v.Add(list.Index(i), list, "the algorithm %q is already in the list", with)
		case !with.BindsContext() && strings.EqualFold(d.Context, contextRequired):
			v.Add(list.Index(i), list, "%s cannot bind a data key to a context, expected another algorithm, because Context is %q", with, contextRequired)
		}
		before = append(before, with)
	}
}

func (d *DataKeys) format() algorithm.Format {
	newest := algorithm.Format1
	for _, name := range d.WrapAlgs {
		newest = max(newest, algorithm.WrappingFormat(name))
	}
	return newest
}

func (d *DataKeys) compile(c *Compiled, o compileOptions) {
	c.dataKeys = &DataKeyPolicy{
		wrappings: d.wrappings(), keySize: d.KeySize / 8, context: cmp.Or(strings.ToLower(d.Context), contextOptional),
		keys: keyrules.NewPolicy(d.KeyIDs, o.manager.rules()),
	}
}

// wrappings returns the known algorithms of the list.
func (d *DataKeys) wrappings() (all []algorithm.Wrapping) {
	for _, name := range d.WrapAlgs {
		if with, known := algorithm.FindWrapping(name); known {
			all = append(all, with)
		}
	}
	return all
}

// DataKeys returns the policy of the operations on data keys, or nil if the profile does not
// offer them.
func (c *Compiled) DataKeys() *DataKeyPolicy { return c.dataKeys }

func (d *DataKeys) judge() []judgement {
	parts := []Strength{{Bits: d.KeySize, Limit: fmt.Sprintf("data keys of %d bits", d.KeySize)}}
	objection := ""
	for _, with := range d.wrappings() {
		bits, limit := with.Strength(with.KeySizes()[0])
		parts = append(parts, Strength{Bits: bits, Limit: limit})
		if why := with.Approval().Objection(); why != "" && objection == "" {
			objection = "WrapAlgs has " + with.String() + ", " + why
		}
	}
	name := namesOf(d.wrappings(), " or ")
	judgements := make([]judgement, len(dataKeysRow.Operations))
	for i := range judgements {
		judgements[i] = judgement{name, parts, objection}
	}
	d.judgeStreams(judgements)
	return judgements
}

// judgeStreams changes the judgements of EncryptStream and DecryptStream. The data key of a stream
// has one size, whatever KeySize is.
func (d *DataKeys) judgeStreams(judgements []judgement) {
	const with = algorithm.AES256GCMHKDF64KB
	bits, limit := with.Strength()
	for i, operation := range dataKeysRow.Operations {
		j := &judgements[i]
		switch operation.Operation {
		case OpEncryptStream:
			if why := with.Approval().Objection(); why != "" && j.objection == "" {
				j.objection = "it encrypts with " + with.String() + ", " + why
			}
		case OpDecryptStream:
		default:
			continue
		}
		j.algorithm = with.String()
		j.parts = append([]Strength{{Bits: bits, Limit: limit}}, j.parts[1:]...)
	}
}

func (d *DataKeys) listedKeys() []keyrules.ID { return d.KeyIDs }

func (d *DataKeys) warn(w warner, at yamlfile.Place, p *Profile, manager *KMS) {
	w.external(at, d.KeyIDs, manager)
	if p.API.EncryptData == nil || !slices.Contains(d.wrappings(), algorithm.WrapAESGCM) {
		return
	}
	for i, key := range d.KeyIDs {
		if slices.ContainsFunc(p.API.EncryptData.KeyIDs, func(other keyrules.ID) bool {
			return other.ID == key.ID || other.ID == keyrules.AnyID || key.ID == keyrules.AnyID
		}) {
			where := at.Field("KeyIds").Index(i)
			w.Add(where, at.Field("KeyIds"), "is a key that DecryptData may use as well, so that its callers can unwrap data keys without the checks of DataKeys; use a wrapping key for nothing else")
			return
		}
	}
}

// DataKeyPolicy is the compiled policy of the operations on data keys.
type DataKeyPolicy struct {
	wrappings []algorithm.Wrapping
	keySize   int
	context   string
	keys      *keyrules.Policy
}

// Wrapping returns the algorithm of new data keys for a wrapping key that has some
// algorithms. It reports false if the profile allows none of them.
func (d *DataKeyPolicy) Wrapping(has func(algorithm.Wrapping) bool) (algorithm.Wrapping, bool) {
	if i := slices.IndexFunc(d.wrappings, has); i >= 0 {
		return d.wrappings[i], true
	}
	return 0, false
}

// Allows reports whether data keys may be wrapped with an algorithm.
func (d *DataKeyPolicy) Allows(with algorithm.Wrapping) bool {
	return slices.Contains(d.wrappings, with)
}

// Algorithms returns the names of the allowed algorithms, for messages.
func (d *DataKeyPolicy) Algorithms() string {
	return namesOf(d.wrappings, ", ")
}

// KeySize returns the size of generated data keys in bytes: 16, 24 or 32.
func (d *DataKeyPolicy) KeySize() int { return d.keySize }

// ContextProblem returns what is wrong with the presence of a context, as the end of a sentence
// that begins with the field. It is empty if nothing is wrong.
func (d *DataKeyPolicy) ContextProblem(given bool) string {
	switch {
	case d.context == contextRequired && !given:
		return "is empty, expected a context, because Context of the profile is required"
	case d.context == contextNone && given:
		return "is not empty, expected no context, because Context of the profile is none"
	}
	return ""
}

// Keys returns which of the broker's keys may wrap.
func (d *DataKeyPolicy) Keys() *keyrules.Policy { return d.keys }

// DataKey is the algorithm of a generated data key in a [UsedKey].
const DataKey = "data-key"

func (d *DataKeyPolicy) effect(u Use) (Effect, string) {
	if u.Keys[0].ID == "" { // a batch of which no key was unwrapped
		return "", ""
	}
	if why := d.keys.Refusal(u.Keys[0].ID); why != "" {
		return refused(why)
	}
	if u.Operation == OpGetPublicKey {
		return "", ""
	}
	if d.ContextProblem(u.GivenContext) != "" {
		if u.GivenContext {
			return Refused, "a context, expected none"
		}
		return Refused, "no context, expected one"
	}
	with, known := algorithm.FindWrapping(u.Algorithm)
	if !known || u.GivenContext && !with.BindsContext() {
		return Refused, "keys wrapped with " + u.Algorithm
	}
	if u.Operation == OpUnwrapKey || u.Operation == OpDecryptStream {
		if !d.Allows(with) {
			return Refused, "keys wrapped with " + u.Algorithm + ", expected " + d.Algorithms()
		}
		return "", ""
	}
	if other := u.Keys[1]; u.Operation == OpRewrapKey {
		if why := d.keys.Refusal(other.ID); why != "" {
			return refused(why)
		}
		if old, known := algorithm.FindWrapping(u.Keys[0].Algorithm); !known || !d.Allows(old) {
			return Refused, "keys wrapped with " + u.Keys[0].Algorithm + ", expected " + d.Algorithms()
		}
	} else if other.Bits != 0 && other.Bits != 8*d.keySize {
		return Changed, fmt.Sprintf("data keys of %d bits instead of %d bits", 8*d.keySize, other.Bits)
	}
	next, usable := d.instead(with, u.GivenContext)
	if !usable {
		return Refused, "keys that wrap with " + u.Algorithm + ", expected keys for " + d.Algorithms()
	}
	return changed(u.Algorithm, next.String())
}

// instead returns the algorithm of new data keys for the keys that wrap with an algorithm.
func (d *DataKeyPolicy) instead(with algorithm.Wrapping, givenContext bool) (algorithm.Wrapping, bool) {
	return d.Wrapping(func(w algorithm.Wrapping) bool { return w.Key() == with.Key() && (!givenContext || w.BindsContext()) })
}

func (d *DataKeyPolicy) extremes(op Operation) (all []Use) {
	for _, id := range d.keys.Sources() {
		for _, with := range d.wrappings {
			for _, given := range []bool{false, true} {
				if next, _ := d.instead(with, given); op != OpUnwrapKey && op != OpDecryptStream && next != with {
					continue // the profile wraps with another algorithm
				}
				u := Use{Operation: op, Algorithm: with.String(), GivenContext: given}
				u.Keys[0].ID = id
				switch op {
				case OpGenerateDataKey:
					u.Keys[1] = UsedKey{Algorithm: DataKey, Bits: 8 * d.keySize}
				case OpRewrapKey:
					u.Keys[0].Algorithm, u.Keys[1].ID = with.String(), id
				}
				all = append(all, u)
			}
		}
	}
	return all
}

// dataKeyPrimitives returns the primitives of an operation on data keys.
func dataKeyPrimitives(u Use) (halves [][]algorithm.Primitive, known bool) {
	if u.Algorithm == "" && u.Keys == [2]UsedKey{} {
		return nil, true // a batch of which no key was unwrapped
	}
	if u.Operation == OpGetPublicKey {
		key, known := keyPrimitive(u.Keys[0])
		return oneHalf(key), known
	}
	wrapping, old := u.Keys[0], UsedKey{}
	if u.Operation == OpRewrapKey {
		wrapping, old = u.Keys[1], u.Keys[0]
	}
	halves, known = wrappingOf(u.Algorithm, wrapping.Bits)
	if !known {
		return nil, false
	}
	var more []algorithm.Primitive
	switch u.Operation {
	case OpRewrapKey:
		olds, known := wrappingOf(old.Algorithm, 0)
		if !known {
			return nil, false
		}
		// A second half does not protect data that was wrapped before, so the old algorithm
		// counts alone.
		return oneHalf(slices.Concat(append(olds, halves...)...)...), true
	case OpGenerateDataKey:
		if !slices.Contains(algorithm.AESGCM.KeySizes(), u.Keys[1].Bits) {
			return nil, false
		}
		more = []algorithm.Primitive{algorithm.DataKeyPrimitive(u.Keys[1].Bits)}
	case OpEncryptStream, OpDecryptStream:
		more = algorithm.AES256GCMHKDF64KB.Primitives()
	}
	for i := range halves {
		halves[i] = append(halves[i], more...)
	}
	return halves, true
}

// wrappingOf returns the primitives of an algorithm that wraps with a key of a size in bits, 0 if
// the size is not known.
func wrappingOf(name string, bits int) ([][]algorithm.Primitive, bool) {
	with, known := algorithm.FindWrapping(name)
	if !known {
		return nil, false
	}
	switch sizes := with.KeySizes(); {
	case bits == 0:
	case with.Key() == algorithm.RSAWrappingKey && bits >= sizes[0] && bits <= algorithm.MaxRSASize:
	case with.Key() == algorithm.AESWrappingKey && slices.Contains(sizes, bits):
	case sizes[0] == algorithm.FixedSize:
	default:
		return nil, false
	}
	return with.Primitives(bits), true
}

// dataKeyObjection returns why FIPS 140-3 does not approve an operation on data keys.
func dataKeyObjection(u Use) string {
	if u.Operation == OpGetPublicKey {
		return keyObjection(u.Keys[0])
	}
	with, is := algorithm.FindWrapping(u.Algorithm)
	if !is {
		return "" // a batch of which no key was unwrapped
	}
	if why := objection(u.Algorithm, with.Approval()); why != "" {
		return why
	}
	if old, is := algorithm.FindWrapping(u.Keys[0].Algorithm); is && u.Operation == OpRewrapKey {
		return objection(old.String(), old.Approval())
	}
	if stream := algorithm.AES256GCMHKDF64KB; u.Operation == OpEncryptStream {
		return objection(stream.String(), stream.Approval())
	}
	return ""
}
