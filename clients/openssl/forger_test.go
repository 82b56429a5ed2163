// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
)

// The types of records and of messages that the tests forge (RFC 8446, sections 4 and 5.1).
const (
	recordAlert, recordHandshake, recordData                          = 21, 22, 23
	messageHelloRequest, messageTicket, messageRequest, messageUpdate = 0, 4, 13, 24
)

// forger is a server of crypto/tls that takes over the keys after the handshake, to send records that crypto/tls never
// sends. It has TLS_AES_128_GCM_SHA256, or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 with TLS 1.2.
type forger struct {
	net.Conn
	version  uint16
	secret   []byte // of the server's direction, in TLS 1.3
	aead     cipher.AEAD
	iv       []byte
	sequence uint64
}

// recordedConn keeps what the server sends.
type recordedConn struct {
	net.Conn
	sent bytes.Buffer
}

func (c *recordedConn) Write(b []byte) (int, error) {
	c.sent.Write(b)
	return c.Conn.Write(b)
}

// serveForger accepts connections, and calls misbehave with each after the handshake.
func serveForger(t testing.TB, authority *authority, version uint16, misbehave func(*forger)) string {
	t.Helper()
	config := authority.serverConfig(t)
	config.MinVersion, config.MaxVersion, config.SessionTicketsDisabled = version, version, true
	config.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, listener, func(raw net.Conn) {
		if f, err := newForger(raw, config, version); err == nil {
			misbehave(f)
		} else if errors.Is(err, errForger) {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

var errForger = errors.New("the keys of the handshake are not as this test knows them")

func newForger(raw net.Conn, config *tls.Config, version uint16) (*forger, error) {
	var keyLog strings.Builder
	config = config.Clone()
	config.KeyLogWriter = &keyLog
	recorded := &recordedConn{Conn: raw}
	conn := tls.Server(recorded, config)
	if err := conn.Handshake(); err != nil {
		return nil, err
	}
	secrets := map[string][]byte{}
	var clientRandom []byte
	for line := range strings.Lines(keyLog.String()) {
		fields := strings.Fields(line)
		random, err := hex.DecodeString(fields[1])
		secret, bad := hex.DecodeString(fields[2])
		if err != nil || bad != nil {
			return nil, errForger
		}
		clientRandom, secrets[fields[0]] = random, secret
	}
	f := &forger{Conn: raw, version: version}
	if version == tls.VersionTLS13 {
		if conn.ConnectionState().CipherSuite != tls.TLS_AES_128_GCM_SHA256 {
			return nil, errForger
		}
		f.secret = secrets["SERVER_TRAFFIC_SECRET_0"]
		return f, f.setKeys()
	}
	// The random value of the server is behind the headers of the record and the message, and the version.
	serverRandom := recorded.sent.Bytes()[11:43]
	seed := append(append([]byte("key expansion"), serverRandom...), clientRandom...)
	block := expandTLS12(secrets["CLIENT_RANDOM"], seed, 2*16+2*4)
	f.iv = slices.Concat(block[36:40], make([]byte, 8))
	f.sequence = 1 // record 0 was Finished
	return f, f.setKey(block[16:32])
}

// expandTLS12 is P_SHA256 of RFC 5246, section 5.
func expandTLS12(secret, seed []byte, size int) []byte {
	digest := func(parts ...[]byte) []byte {
		h := hmac.New(sha256.New, secret)
		for _, part := range parts {
			h.Write(part)
		}
		return h.Sum(nil)
	}
	var out []byte
	for a := digest(seed); len(out) < size; a = digest(a) {
		out = append(out, digest(a, seed)...)
	}
	return out[:size]
}

// expandTLS13 is HKDF-Expand-Label of RFC 8446, section 7.1, with an empty context.
func expandTLS13(secret []byte, label string, size int) ([]byte, error) {
	label = "tls13 " + label
	info := append(binary.BigEndian.AppendUint16(nil, uint16(size)), byte(len(label)))
	return hkdf.Expand(sha256.New, secret, string(info)+label+"\x00", size)
}

// setKeys makes the keys of the secret.
func (f *forger) setKeys() error {
	key, err := expandTLS13(f.secret, "key", 16)
	if err != nil {
		return err
	}
	if f.iv, err = expandTLS13(f.secret, "iv", 12); err != nil {
		return err
	}
	f.sequence = 0
	return f.setKey(key)
}

func (f *forger) setKey(key []byte) error {
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	f.aead, err = cipher.NewGCM(block) //nolint:gosec // the nonces are the ones of TLS
	return err
}

// record returns an encrypted record.
func (f *forger) record(kind byte, content []byte) []byte {
	nonce := bytes.Clone(f.iv)
	number := binary.BigEndian.AppendUint64(nil, f.sequence)
	f.sequence++
	if f.version == tls.VersionTLS13 {
		for i, b := range number {
			nonce[4+i] ^= b
		}
		content = append(bytes.Clone(content), kind)
		header := binary.BigEndian.AppendUint16([]byte{recordData, 3, 3}, uint16(len(content)+16))
		return f.aead.Seal(header, nonce, content, header)
	}
	copy(nonce[4:], number)
	additional := binary.BigEndian.AppendUint16(append(number, kind, 3, 3), uint16(len(content)))
	record := binary.BigEndian.AppendUint16([]byte{kind, 3, 3}, uint16(len(content)+8+16))
	record = append(record, nonce[4:]...)
	return f.aead.Seal(record, nonce, content, additional)
}

// handshakeMessage returns a message with its header.
func handshakeMessage(kind byte, content ...byte) []byte {
	return append([]byte{kind, byte(len(content) >> 16), byte(len(content) >> 8), byte(len(content))}, content...)
}

// update returns a record that updates the keys of the server, and asks for new keys of the client if ask is 1.
func (f *forger) update(ask byte) []byte {
	record := f.record(recordHandshake, handshakeMessage(messageUpdate, ask))
	secret, err := expandTLS13(f.secret, "traffic upd", sha256.Size)
	if err != nil {
		return nil
	}
	f.secret = secret
	if f.setKeys() != nil {
		return nil
	}
	return record
}

// ticket returns a record with a ticket (RFC 8446, section 4.6.1).
func (f *forger) ticket(size int) []byte {
	content := []byte{0, 0, 28, 32, 0, 0, 0, 0, 1, byte(f.sequence)}
	content = binary.BigEndian.AppendUint16(content, uint16(size))
	content = append(append(content, make([]byte, size)...), 0, 0)
	return f.record(recordHandshake, handshakeMessage(messageTicket, content...))
}

// flood sends what forge returns until the client has gone.
func (f *forger) flood(forge func() []byte) {
	for {
		var several []byte
		for len(several) < 16<<10 {
			several = append(several, forge()...)
		}
		if _, err := f.Write(several); err != nil {
			return
		}
	}
}
