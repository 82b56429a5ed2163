// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/segment"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/blob"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// The methods and the numbers of their fields, written down a second time.
const (
	methodEncryptStream = "/cryptobroker.stream.v1.StreamService/EncryptStream"
	methodDecryptStream = "/cryptobroker.stream.v1.StreamService/DecryptStream"

	startContext          = 4
	repliedEnd, replyPart = 1, 2
)

const segmentSize = 64 << 10

// cipherMessages sends messages to EncryptStream or DecryptStream, and returns the output. It is
// complete if the error is nil.
func cipherMessages(t testing.TB, conn *grpc.ClientConn, method string, messages ...message) ([]byte, error) {
	t.Helper()
	stream := openStream(t, conn, method)
	go func() {
		for _, m := range messages {
			if stream.SendMsg([]byte(m)) != nil {
				return // receiving returns the reason
			}
		}
		_ = stream.CloseSend()
	}()
	var output []byte
	ended := false
	for {
		reply, err := receive(t, stream)
		if errors.Is(err, io.EOF) {
			if !ended {
				t.Errorf("%s ended with OK and without an end", method)
			}
			return output, nil
		}
		if err != nil {
			return output, err
		}
		if ended {
			t.Errorf("%s replied after the end", method)
		}
		found := parse(t, reply)
		_, ended = found[repliedEnd]
		output = append(output, found[replyPart]...)
	}
}

// inChunks returns the messages of a start and an input.
func inChunks(start message, input []byte, size int) []message {
	messages := []message{startOf(start)}
	for part := range slices.Chunk(input, size) {
		messages = append(messages, message{}.bytes(partChunk, part))
	}
	return messages
}

// cipherStream calls EncryptStream or DecryptStream with a start. DecryptStream gets a stream whose
// key has the id in the start.
func cipherStream(t testing.TB, conn *grpc.ClientConn, method string, start message) error {
	t.Helper()
	id := "cipher"
	for _, other := range []string{"missing", "aes"} {
		if bytes.Contains(start, message{}.text(wrapKeyID, other)) {
			id = other
		}
	}
	_, err := cipherMessages(t, conn, method, inChunks(start, encryptedStream(id, []byte("plaintext")), segmentSize)...)
	return err
}

// encryptedStream returns a stream whose data key is wrapped with a key of fuzzing.
func encryptedStream(id string, plaintext []byte) []byte {
	encrypted := bytes.NewBuffer(blob.AppendStreamHeader(nil, wrappedWith(id)))
	e := must(segment.NewEncrypter(encrypted, theDataKey, blob.StreamAdditional(nil)))
	must(e.Write(plaintext))
	if err := e.Close(); err != nil {
		panic(err)
	}
	return encrypted.Bytes()
}

// streamsOf starts a broker with wrapping keys.
func streamsOf(t testing.TB, options ...server.Option) (*broker, *grpc.ClientConn) {
	t.Helper()
	b := startWith(t, dataKeyProfiles, nil, append(options, server.WithKeys(keyDirectory(t, map[string]string{
		"kek.bin": strings.Repeat("k", 32), "other.bin": strings.Repeat("o", 16), "signs.key": edKeyPEM,
		"pair.key": keyPEM(wrappingRSA()), "curve.key": keyPEM(ecKey), "public.pub": publicPEM(wrappingRSA()),
	})))...)
	return b, connect(t, b.socket(""))
}

func encryptStart(profile, key, context string) message {
	return message{}.text(requestProfile, profile).text(wrapKeyID, key).text(startContext, context)
}

func decryptStart(profile, context string) message {
	return message{}.text(requestProfile, profile).text(startContext, context)
}

func encryptAll(t testing.TB, conn *grpc.ClientConn, start message, plaintext []byte) []byte {
	t.Helper()
	encrypted, err := cipherMessages(t, conn, methodEncryptStream, inChunks(start, plaintext, segmentSize)...)
	if err != nil {
		t.Fatal(err)
	}
	return encrypted
}

// pattern returns bytes that differ from segment to segment.
func pattern(size int) []byte {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i >> 3 * (i & 7))
	}
	return data
}

func TestAStreamComesBackWhenItIsDecrypted(t *testing.T) {
	_, conn := streamsOf(t)
	for sentence, c := range map[string]struct {
		key         string
		size, parts int
	}{
		"nothing":                         {"kek", 0, segmentSize},
		"one byte":                        {"kek", 1, 1},
		"exactly the first segment":       {"kek", segmentSize - segment.HeaderSize - segment.TagSize, segmentSize},
		"several segments":                {"kek", 300_000, segmentSize},
		"several segments in small parts": {"kek", 200_000, 999},
		"under RSA-OAEP":                  {"pair", 100_000, segmentSize},
		"under HPKE":                      {"curve", 100_000, segmentSize},
	} {
		t.Run(sentence, func(t *testing.T) {
			plaintext := pattern(c.size)
			encrypted := encryptAll(t, conn, encryptStart("Wrap", c.key, "tenant a"), plaintext)
			got, err := cipherMessages(t, conn, methodDecryptStream, inChunks(decryptStart("Wrap", "tenant a"), encrypted, c.parts)...)
			if err != nil || !bytes.Equal(got, plaintext) {
				t.Errorf("found %d bytes of plaintext, expected %d: %v", len(got), len(plaintext), err)
			}
		})
	}
}

// split returns the header of a stream with the header of its segments, and the segments.
func split(stream []byte) (header []byte, segments [][]byte) {
	size := blob.StreamPrefixSize + must(blob.StreamKeySize(stream)) + segment.HeaderSize
	header, rest := stream[:size], stream[size:]
	first := min(len(rest), segmentSize-segment.HeaderSize)
	return header, append([][]byte{rest[:first]}, slices.Collect(slices.Chunk(rest[first:], segmentSize))...)
}

func TestAStreamThatWasChangedDoesNotDecryptAndReturnsOnlyWhatIsAuthentic(t *testing.T) {
	_, conn := streamsOf(t)
	plaintext := pattern(300_000)
	whole := encryptAll(t, conn, encryptStart("Wrap", "kek", "tenant a"), plaintext)
	other := encryptAll(t, conn, encryptStart("Wrap", "kek", "tenant a"), plaintext)
	header, s := split(whole)
	otherHeader, otherSegments := split(other)
	if len(s) != 5 {
		t.Fatalf("found %d segments, expected 5", len(s))
	}
	join := func(header []byte, segments ...[]byte) []byte {
		return slices.Concat(header, slices.Concat(segments...))
	}
	flip := func(data []byte, at int) []byte {
		data = slices.Clone(data)
		data[at] ^= 1
		return data
	}
	const changed = "the stream does not authenticate: it was changed or cut; discard what was decrypted"
	for sentence, c := range map[string]struct {
		stream []byte
		want   string
	}{
		"a changed byte":                      {join(header, s[0], flip(s[1], 100), s[2], s[3], s[4]), changed},
		"a changed first byte":                {flip(whole, len(header)), changed},
		"a changed last byte":                 {flip(whole, len(whole)-1), changed},
		"swapped segments":                    {join(header, s[0], s[2], s[1], s[3], s[4]), changed},
		"a repeated segment":                  {join(header, s[0], s[1], s[1], s[2], s[3], s[4]), changed},
		"a missing segment":                   {join(header, s[0], s[2], s[3], s[4]), changed},
		"a segment of another stream":         {join(header, s[0], otherSegments[1], s[2], s[3], s[4]), changed},
		"the header of another stream":        {join(otherHeader, s...), changed},
		"a byte more":                         {append(slices.Clone(whole), 0), changed},
		"a stream behind it":                  {append(slices.Clone(whole), other...), changed},
		"no last byte":                        {whole[:len(whole)-1], changed},
		"no last segment":                     {join(header, s[0], s[1], s[2], s[3]), "the end of the stream is missing; discard what was decrypted"},
		"no segment":                          {header, "the end of the stream is missing; discard what was decrypted"},
		"half of the wrapped key":             {whole[:blob.StreamPrefixSize+20], "the input ends in its header, expected an encrypted stream"},
		"nothing":                             {nil, "the input ends in its header, expected an encrypted stream"},
		"plaintext":                           {plaintext, "the input is not an encrypted stream of a broker"},
		"another version":                     {flip(whole, 3), "the input is an encrypted stream of version 0, expected version 1"},
		"a wrapped key that is too large":     {[]byte("CBS\x01\xff\xff"), "the input has a wrapped key of 65535 bytes, expected 1 to 16384"},
		"a wrapped key that was changed":      {flip(whole, len(header)-segment.HeaderSize-1), "the stream's wrappedKey does not authenticate with its key and context"},
		"a wrapped key that is no longer one": {flip(whole, blob.StreamPrefixSize), "the stream's wrappedKey is not a wrapped key of a broker"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := cipherMessages(t, conn, methodDecryptStream, inChunks(decryptStart("Wrap", "tenant a"), c.stream, segmentSize)...)
			if got := status.Convert(err); got.Code() != codes.InvalidArgument || got.Message() != `DecryptStream with profile "Wrap": `+c.want {
				t.Errorf("got %s %q\nwant INVALID_ARGUMENT … %q", got.Code(), got.Message(), c.want)
			}
			if !bytes.HasPrefix(plaintext, got) {
				t.Error("the broker returned bytes that are not the plaintext")
			}
		})
	}
}

func TestAStreamIsRefusedWithASentence(t *testing.T) {
	_, conn := streamsOf(t)
	encrypted := encryptAll(t, conn, encryptStart("Wrap", "kek", "tenant a"), []byte("text"))
	short := encryptedWith(t, bytes.Repeat([]byte{1}, 16))
	for sentence, c := range map[string]struct {
		method   string
		messages []message
		code     codes.Code
		want     string
	}{
		"another context": {
			methodDecryptStream, inChunks(decryptStart("Wrap", "tenant b"), encrypted, segmentSize), codes.InvalidArgument,
			`DecryptStream with profile "Wrap": the stream's wrappedKey belongs to another context, expected the context that it was wrapped with`,
		},
		"a key that the profile does not list": {
			methodDecryptStream, inChunks(decryptStart("Bare", "tenant a"), encrypted, segmentSize), codes.PermissionDenied,
			`DecryptStream with profile "Bare": the profile does not list the key "kek" in KeyIds`,
		},
		"no context where one is required": {
			methodEncryptStream, inChunks(encryptStart("Tenants", "kek", ""), nil, 1), codes.InvalidArgument,
			`EncryptStream with profile "Tenants": context is empty, expected a context, because Context of the profile is required`,
		},
		"a context that is too large": {
			methodEncryptStream, inChunks(encryptStart("Wrap", "kek", strings.Repeat("c", 4097)), nil, 1), codes.InvalidArgument,
			"EncryptStream: context has 4097 bytes, expected at most 4096",
		},
		"a chunk that is too large": {
			methodEncryptStream, inChunks(encryptStart("Wrap", "kek", ""), make([]byte, segmentSize+1), segmentSize+1), codes.InvalidArgument,
			"EncryptStream: chunk has 65537 bytes, expected at most 65536",
		},
		"a data key of another size": {
			methodDecryptStream, inChunks(decryptStart("Wrap", ""), short, segmentSize), codes.InvalidArgument,
			`DecryptStream with profile "Wrap": the data key of the stream has 16 bytes, expected the 32 of aes256-gcm-hkdf-64kb`,
		},
		"a chunk before the start": {
			methodDecryptStream, []message{message{}.bytes(partChunk, encrypted)}, codes.InvalidArgument,
			"DecryptStream: start is missing, expected it in the first message",
		},
		"nothing": {methodEncryptStream, nil, codes.InvalidArgument, "EncryptStream: start is missing, expected it in the first message"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := cipherMessages(t, conn, c.method, c.messages...)
			if got := status.Convert(err); got.Code() != c.code || got.Message() != c.want {
				t.Errorf("got %s %q\nwant %s %q", got.Code(), got.Message(), c.code, c.want)
			}
		})
	}
}

// encryptedWith returns the header of a stream with a data key.
func encryptedWith(t *testing.T, dataKey []byte) []byte {
	t.Helper()
	_, conn := streamsOf(t)
	wrapped, err := v1.NewCryptoServiceClient(conn).WrapKey(t.Context(), &v1.WrapKeyRequest{Profile: "Wrap", KeyId: "kek", DataKey: dataKey})
	if err != nil {
		t.Fatal(err)
	}
	return blob.AppendStreamHeader(nil, wrapped.GetWrappedKey())
}

func TestTheKeyOfAStreamIsWrappedAgainWithoutItsData(t *testing.T) {
	_, conn := streamsOf(t)
	plaintext := pattern(100_000)
	encrypted := encryptAll(t, conn, encryptStart("Move", "kek", "tenant a"), plaintext)
	size := must(blob.StreamKeySize(encrypted))
	wrapped, data := encrypted[blob.StreamPrefixSize:][:size], encrypted[blob.StreamPrefixSize+size:]
	moved, err := v1.NewCryptoServiceClient(conn).RewrapKey(t.Context(), &v1.RewrapKeyRequest{Profile: "Move", WrappedKey: wrapped, Context: []byte("tenant a"), KeyId: "other"})
	if err != nil {
		t.Fatal(err)
	}
	again := append(blob.AppendStreamHeader(nil, moved.GetWrappedKey()), data...)
	got, err := cipherMessages(t, conn, methodDecryptStream, inChunks(decryptStart("Move", "tenant a"), again, segmentSize)...)
	if err != nil || !bytes.Equal(got, plaintext) {
		t.Errorf("found %d bytes of plaintext, expected %d: %v", len(got), len(plaintext), err)
	}
}

// The connection ends, because gRPC would keep replies that nobody reads.
func TestAClientThatDoesNotReadItsStreamLosesItsConnection(t *testing.T) {
	b, conn := streamsOf(t, server.WithIdleTime(time.Second))
	t.Run("although it sends all that it can", func(t *testing.T) {
		stream := openStream(t, conn, methodEncryptStream)
		send(t, stream, startOf(encryptStart("Wrap", "kek", "")))
		part := []byte(message{}.bytes(partChunk, make([]byte, segmentSize)))
		for stream.SendMsg(part) == nil { // until the connection ends
		}
		var err error
		for err == nil {
			_, err = receive(t, stream)
		}
		if status.Code(err) != codes.Unavailable {
			t.Errorf("got %v, want UNAVAILABLE", err)
		}
	})
	t.Run("and sends nothing more", func(t *testing.T) {
		h := byHand(t, b.socket(""), settings{window: 10})
		start := startOf(encryptStart("Wrap", "kek", ""))
		h.data(h.open(methodEncryptStream), append(head(len(start)), start...), false)
		h.goesAway()
	})
	awaitMetrics(t, b, `crypto_broker_requests_in_flight 0`)
}

func TestAStreamOfDataThatDoesNotGoOnEnds(t *testing.T) {
	b, conn := streamsOf(t, server.WithIdleTime(100*time.Millisecond))
	stream := openStream(t, conn, methodEncryptStream)
	send(t, stream, startOf(encryptStart("Wrap", "kek", "")))
	var err error
	for err == nil {
		_, err = receive(t, stream)
	}
	if got := status.Convert(err); got.Code() != codes.DeadlineExceeded || got.Message() != "EncryptStream: no chunk came within 100ms" {
		t.Errorf("got %v", err)
	}
	awaitMetrics(t, b, `crypto_broker_requests_total{code="DeadlineExceeded",operation="EncryptStream",profile="Wrap"} 1`, `crypto_broker_requests_in_flight 0`)
}

// Each stream takes its memory at once, so streams wait for others to end and not for each other.
func TestMoreStreamsThanMemoryAreServedOneAfterTheOther(t *testing.T) {
	_, conn := streamsOf(t, server.WithMemory(4<<20)) // room for ten
	plaintext := pattern(300_000)
	results := make(chan error, 30)
	for range cap(results) {
		go func() {
			_, err := cipherMessages(t, conn, methodEncryptStream, inChunks(encryptStart("Wrap", "kek", ""), plaintext, segmentSize)...)
			results <- err
		}()
	}
	for range cap(results) {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

var updateStream = flag.Bool("update-stream", false, "write the encrypted stream in testdata again")

// The stream in testdata was written once. Every later broker has to decrypt it.
func TestAStreamOfTheFirstVersionIsDecrypted(t *testing.T) {
	_, conn := streamsOf(t)
	path := filepath.Join("testdata", "encrypted-stream-1.bin")
	plaintext := pattern(1000)
	if *updateStream {
		if err := os.WriteFile(path, encryptAll(t, conn, encryptStart("Wrap", "kek", "tenant a"), plaintext), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	encrypted, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	header, _, err := blob.Parse(encrypted[blob.StreamPrefixSize:][:must(blob.StreamKeySize(encrypted))])
	if err != nil || header.KeyID != "kek" || header.Algorithm != algorithm.WrapAESGCM {
		t.Errorf("the header is %+v: %v", header, err)
	}
	got, err := cipherMessages(t, conn, methodDecryptStream, inChunks(decryptStart("Wrap", "tenant a"), encrypted, segmentSize)...)
	if err != nil || !bytes.Equal(got, plaintext) {
		t.Errorf("found %d bytes of plaintext, expected %d: %v", len(got), len(plaintext), err)
	}
}
