// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crypto-broker/crypto-broker-operator/broker/internal/fuzzmemory"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

const (
	// maxRepeated is the size in bytes of the largest message that is made here: a
	// little less than gRPC takes.
	maxRepeated = 4<<20 - 4<<10
	// repeatedPerByte is how many bytes each byte of a request may allocate: for the frames, for the message in one piece, for a
	// part of it in the reply, and for the same at the client, which is in this process. A message with an object for each of its
	// fields takes far more.
	repeatedPerByte = 8
	// repeatedSeed is the size in bytes of the messages that the seeds make.
	repeatedSeed = 2 << 20
)

// repetition makes a large message from a few bytes: prefix, and then many times unit, within nested fields, the outermost first.
type repetition struct {
	prefix, path, unit []byte
	count              uint32
}

func (r repetition) message() message {
	if len(r.unit) == 0 || len(r.prefix) > maxRepeated/2 || len(r.unit) > maxRepeated/4 || len(r.path) > 16 {
		return message(r.prefix)
	}
	room := maxRepeated - len(r.prefix) - len(r.path)*(protowire.SizeTag(protowire.MaxValidNumber)+protowire.SizeVarint(maxRepeated))
	whole := message(bytes.Repeat(r.unit, min(int(r.count), room/len(r.unit))))
	for _, number := range slices.Backward(r.path) {
		whole = message{}.bytes(max(1, protowire.Number(number)), whole)
	}
	return append(slices.Clone(message(r.prefix)), whole...)
}

// often repeats a unit up to the size of seeds, in the fields of a path.
func often(prefix message, unit []byte, path ...byte) repetition {
	return repetition{prefix, path, unit, uint32(repeatedSeed / len(unit))}
}

// repeatedSeeds are fields that may be repeated, and fields that may not. The key is the method.
func repeatedSeeds() map[string][]repetition {
	named := message{}.text(requestProfile, "P") // all requests begin so
	empty := func(number protowire.Number) []byte { return message{}.bytes(number, nil) }
	group := protowire.AppendTag(protowire.AppendTag(nil, 100, protowire.StartGroupType), 100, protowire.EndGroupType)
	hash := []repetition{
		often(named, empty(requestInput)), often(named, empty(requestMetadata)), often(named, empty(100)),
		often(named, group), often(named, group[:2]),
		often(named, empty(metadataTrace), requestMetadata), often(named, empty(100), requestMetadata),
		often(named, empty(traceID), requestMetadata, metadataTrace), often(named, group, requestMetadata),
	}
	sign := []repetition{
		often(named, empty(componentKey), signKey, components), often(named, message{}.bytes(componentKey, empty(rawKey)), signKey, components),
		often(named, message{}.bytes(signKey, empty(single))), often(named, message{}.bytes(signKey, message{}.bytes(components, empty(componentKey)))),
		often(named, empty(signMetadata)),
	}
	certificate := []repetition{
		often(named, empty(certPoints)), often(named, message{}.text(certPoints, "x")), often(named, empty(certSubject)), often(named, empty(certMetadata)),
		often(named, empty(certKey)), often(nil, message{}.text(certKey, "x")),
	}
	encrypt := []repetition{
		often(named, empty(dataKey)), often(named, empty(dataCipherMetadata)), often(named, empty(cipherAAD), dataCipherMetadata), often(named, empty(dataMetadata)),
	}
	return map[string][]repetition{
		methodHash: hash, methodHashDataV1: hash,
		methodSignData: sign, methodSignV1: sign, methodVerifyV1: sign,
		methodSignCertificate: certificate, methodSignCertificateV1: certificate,
		methodEncrypt: encrypt, methodEncryptV1: encrypt, methodDecryptV1: encrypt,
		methodListProfiles: {often(nil, empty(100)), often(nil, empty(2)), often(nil, group)},
	}
}

// FuzzRepeatedFields sends requests of up to 4 MiB that are made of a few bytes. No
// request takes memory out of proportion.
func FuzzRepeatedFields(f *testing.F) {
	seeds := repeatedSeeds()
	for i, method := range fuzzedMethods { // seeds have to be in the same order in each process
		for _, seed := range seeds[method] {
			f.Add(uint8(i), seed.prefix, seed.path, seed.unit, seed.count)
		}
	}
	b := startWith(f, fuzzedProfiles, nil, server.WithDevelopmentService(),
		server.WithKeys(keyDirectory(f, map[string]string{"cipher.bin": strings.Repeat("k", 32), "pair.key": edKeyPEM})))
	conn := connect(f, b.socket(""))
	fine := []codes.Code{codes.OK, codes.InvalidArgument, codes.FailedPrecondition, codes.NotFound}
	f.Fuzz(func(t *testing.T, which uint8, prefix, path, unit []byte, count uint32) {
		method := fuzzedMethods[int(which)%len(fuzzedMethods)]
		if strings.HasSuffix(method, "/Benchmark") {
			return // Benchmark measures, whatever the request is
		}
		request := repetition{prefix, path, unit, count}.message()
		fuzzmemory.Check(t, len(request), repeatedPerByte, func() {
			if err := fuzzed(t, conn, method, request); !slices.Contains(fine, status.Code(err)) {
				t.Errorf("%s answered %v", method, err)
			}
		})
		if t.Failed() {
			t.Logf("%s with %q, then %d times %q in the fields %d", method, cut(prefix), count, cut(unit), path)
		}
	})
}

// cut shortens the text of a failure.
func cut(part []byte) []byte { return part[:min(len(part), 100)] }

// hasField reports whether a message has a field, as far as it can be read.
func hasField(m message, wanted protowire.Number) bool {
	for len(m) > 0 {
		number, _, n := protowire.ConsumeField(m)
		if n < 0 {
			return false
		}
		if number == wanted {
			return true
		}
		m = m[n:]
	}
	return false
}

// FuzzRepeatedFieldsOfStreams does the same with a call of Exchange, with the other fields of its messages, and with the start of
// HashStream.
func FuzzRepeatedFieldsOfStreams(f *testing.F) {
	places := []protowire.Number{theHash, theCertificate, theEncrypt, theDecrypt, theSign, theVerify}
	const beside, hashing = 6, 7
	seeds, methods := repeatedSeeds(), []string{methodHashDataV1, methodSignCertificateV1, methodEncryptV1, methodDecryptV1, methodSignV1, methodVerifyV1}
	add := func(which int, r repetition) { f.Add(uint8(which), r.prefix, r.path, r.unit, r.count) }
	for which, method := range methods {
		for _, seed := range seeds[method] {
			add(which, seed)
		}
	}
	add(beside, often(nil, []byte{99}, requestGivenUp))
	add(beside, often(nil, message{}.number(requestGivenUp, 99)))
	add(beside, often(nil, message{}.bytes(100, nil)))
	for _, seed := range seeds[methodHashDataV1] {
		add(hashing, seed)
	}
	b := start(f, fuzzedProfiles)
	conn := connect(f, b.socket(""))
	f.Fuzz(func(t *testing.T, which uint8, prefix, path, unit []byte, count uint32) {
		repeated := repetition{prefix, path, unit, count}.message()
		which %= hashing + 1
		if which == beside && hasField(repeated, requestCalls) {
			return // the calls of a message, each of which gets a reply
		}
		fuzzmemory.Check(t, len(repeated), repeatedPerByte, func() {
			if which == hashing {
				if _, err := hashStream(t, conn, startOf(repeated), chunk("abc")); err != nil && status.Code(err) != codes.InvalidArgument {
					t.Errorf("HashStream ended with %v", err)
				}
				return
			}
			if which < beside {
				repeated = callOf(1, places[which], repeated)
			}
			e := exchange(t, conn)
			e.send(repeated)
			e.closeSend()
			if _, err := e.ends(); err != nil && status.Code(err) != codes.InvalidArgument {
				t.Errorf("Exchange ended with %v", err)
			}
		})
		if t.Failed() {
			t.Logf("the message %d with %q, then %d times %q in the fields %d", which, cut(prefix), count, cut(unit), path)
		}
	})
}
