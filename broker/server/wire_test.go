// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
)

// The methods of the generations of the wire contract, and the numbers of their
// fields, written down a second time.
const (
	methodHash       = "/CryptoBroker.CryptoGrpc/Hash"
	methodHashData   = "/CryptoBroker.CryptoGrpc/HashData"
	methodHashDataV1 = "/cryptobroker.v1.CryptoService/HashData"
)

const (
	requestProfile, requestInput, requestMetadata, requestFormat = 1, 2, 3, 4

	metadataID, metadataCreatedAt, metadataTrace = 1, 2, 3

	traceID, spanID, traceFlags, traceState, traceCorrelationID = 1, 2, 3, 4, 5
)

const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // SHA-256 of "abc"

const sha256Profile = "- Name: P\n  API: {HashData: {HashAlg: SHA-256}}\n"

// message builds a message field by field.
type message []byte

func (m message) bytes(number protowire.Number, value []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, number, protowire.BytesType), value)
}

func (m message) text(number protowire.Number, value string) message {
	return m.bytes(number, []byte(value))
}

func (m message) number(number protowire.Number, value uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, number, protowire.VarintType), value)
}

// field is one field of a reply as it was on the wire.
type field struct {
	Number protowire.Number
	Value  string
}

// fields decodes a reply. It sorts the fields, because their order has no meaning.
func fields(t *testing.T, reply []byte) []field {
	t.Helper()
	var found []field
	for len(reply) > 0 {
		number, kind, n := protowire.ConsumeTag(reply)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		if kind != protowire.BytesType {
			t.Fatalf("field %d has wire type %d; replies of hashes have texts, bytes and messages only", number, kind)
		}
		value, m := protowire.ConsumeBytes(reply[n:])
		if m < 0 {
			t.Fatal(protowire.ParseError(m))
		}
		found = append(found, field{number, string(value)})
		reply = reply[n+m:]
	}
	slices.SortStableFunc(found, func(a, b field) int { return int(a.Number - b.Number) })
	return found
}

func request(metadata []byte) message {
	m := message{}.text(requestProfile, "P").bytes(requestInput, []byte("abc"))
	if metadata != nil {
		m = m.bytes(requestMetadata, metadata)
	}
	return m
}

func TestEachGenerationHashesInItsOwnWay(t *testing.T) {
	raw, err := hex.DecodeString(abc)
	if err != nil {
		t.Fatal(err)
	}
	descriptor := string(message{}.text(1, "P").text(2, "HashData").text(3, "sha-256"))
	conn := connect(t, start(t, sha256Profile).socket(""))
	for sentence, test := range map[string]struct {
		method  string
		request message
		want    []field
	}{
		"G1 and G2, without metadata": {
			methodHash, request(nil),
			[]field{{1, abc}, {2, "sha-256"}},
		},
		"G1, with the time of creation as text": {
			methodHash, request(message{}.text(metadataID, "id").text(metadataCreatedAt, "2025-03-01T10:00:00Z")),
			[]field{{1, abc}, {2, "sha-256"}, {3, string(message{}.text(metadataID, "id").text(metadataCreatedAt, "2025-03-01T10:00:00Z"))}},
		},
		"G2, with a trace": {
			methodHash, request(message{}.text(metadataID, "id").bytes(metadataTrace, message{}.text(traceID, "0af7651916cd43dd8448eb211c80319c"))),
			[]field{{1, abc}, {2, "sha-256"}, {3, string(message{}.text(metadataID, "id").bytes(metadataTrace, message{}.text(traceID, "0af7651916cd43dd8448eb211c80319c")))}},
		},
		"G3, the format left at its default": {
			methodHashData, request(nil),
			[]field{{2, "sha-256"}, {4, abc}, {6, descriptor}},
		},
		"G3, hexadecimal": {
			methodHashData, request(nil).number(requestFormat, 0),
			[]field{{2, "sha-256"}, {4, abc}, {6, descriptor}},
		},
		"G3, raw": {
			methodHashData, request(nil).number(requestFormat, 1),
			[]field{{2, "sha-256"}, {5, string(raw)}, {6, descriptor}},
		},
		"G3, with metadata": {
			methodHashData, request(message{}.text(metadataID, "id")),
			[]field{{2, "sha-256"}, {3, string(message{}.text(metadataID, "id"))}, {4, abc}, {6, descriptor}},
		},
		"G5, the format left at its default": {
			methodHashDataV1, request(nil),
			[]field{{2, abc}, {4, descriptor}},
		},
		"G5, hexadecimal": {
			methodHashDataV1, request(nil).number(requestFormat, 1),
			[]field{{2, abc}, {4, descriptor}},
		},
		"G5, raw": {
			methodHashDataV1, request(nil).number(requestFormat, 2),
			[]field{{3, string(raw)}, {4, descriptor}},
		},
		"G5, with metadata": {
			methodHashDataV1, request(message{}.text(metadataID, "id")),
			[]field{{1, string(message{}.text(metadataID, "id"))}, {2, abc}, {4, descriptor}},
		},
		"a request of a later client, with fields that are not known": {
			methodHashData, request(nil).text(99, "later").number(98, 7),
			[]field{{2, "sha-256"}, {4, abc}, {6, descriptor}},
		},
		"an empty input": {
			methodHash, message{}.text(requestProfile, "P"),
			[]field{{1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}, {2, "sha-256"}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			reply, err := call(t, conn, test.method, test.request)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, fields(t, reply)); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMetadataComesBackByteForByte(t *testing.T) {
	trace := message{}.text(traceID, "0af7651916cd43dd8448eb211c80319c").text(spanID, "b7ad6b7169203331").
		text(traceFlags, "01").text(traceState, "vendor=1").text(traceCorrelationID, "order 4711")
	conn := connect(t, start(t, sha256Profile).socket(""))
	replyField := map[string]protowire.Number{methodHash: 3, methodHashData: 3, methodHashDataV1: 1}
	for sentence, metadata := range map[string]message{
		"empty":                                 {},
		"all fields":                            message{}.text(metadataID, "4f6b").bytes(metadataTrace, trace),
		"fields that are not known":             message{}.text(metadataID, "4f6b").number(1000, 7).text(12, "later"),
		"fields in another order":               message{}.bytes(metadataTrace, trace).text(12, "later").text(metadataID, "4f6b"),
		"empty fields that need not be there":   message{}.text(metadataID, "").bytes(metadataTrace, nil),
		"a field that is there twice":           message{}.text(metadataID, "a").text(metadataID, "b"),
		"not known fields inside the trace":     message{}.bytes(metadataTrace, trace.text(40, "later")),
		"a length that takes more bytes than 1": message{}.text(12, string(make([]byte, 70_000))),
		"a number in more bytes than it needs":  append(message{}.text(metadataID, "4f6b"), 0xa0, 0x06, 0x81, 0x80, 0x00), // field 100
	} {
		for method, number := range replyField {
			t.Run(sentence+" "+method, func(t *testing.T) {
				reply, err := call(t, conn, method, request(metadata))
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, f := range fields(t, reply) {
					if f.Number == number {
						got = append(got, f.Value)
					}
				}
				if diff := cmp.Diff([]string{string(metadata)}, got); diff != "" {
					t.Errorf("metadata (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestWhatIsInFieldTwoOfLaterMetadataIsLeftAlone(t *testing.T) {
	conn := connect(t, start(t, sha256Profile).socket(""))
	// In this field, a message is a warning of a later release, and a text is the time of the first release.
	for _, metadata := range []message{message{}.text(2, "2025-03-01"), message{}.bytes(2, message{}.text(1, "P"))} {
		reply, err := call(t, conn, methodHashData, request(metadata))
		if err != nil {
			t.Fatal(err)
		}
		if got := fields(t, reply); !slices.Contains(got, field{3, string(metadata)}) {
			t.Errorf("got %q, want the metadata %q", got, metadata)
		}
	}
}

// The reply has the input in it and the metadata; that it is too large for a message
// would be answered with a code that clients take as a reason to try again.
func TestMetadataAtTheLimitComesBackBesideALargeInput(t *testing.T) {
	const mebibyte = 1 << 20
	metadata := message{}.bytes(77, make([]byte, mebibyte-9))
	conn := connect(t, start(t, cipherProfiles).socket(""))
	for _, method := range []string{methodEncrypt, methodEncryptV1} {
		request := encryption("P", raw(gcmKey), gcmNonce, strings.Repeat("p", mebibyte-256)).bytes(dataMetadata, metadata)
		if got := ask(t, conn, method, request); got[3] != string(metadata) || len(got[replyCiphertext]) != mebibyte-256 {
			t.Errorf("%s: got %d bytes of metadata and %d of ciphertext", method, len(got[3]), len(got[replyCiphertext]))
		}
	}
}
