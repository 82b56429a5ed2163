// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/hkdf"
	"crypto/hpke"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// Labels of the secrets and keys of native sessions. The first one is an exporter context of HPKE
// (RFC 9180, section 5.3), and the others are the info of HKDF-Expand (RFC 5869, section 2.3).
const (
	secretLabel  = "secret"
	requestLabel = "request"
	replyLabel   = "reply"
	rekeyLabel   = "rekey"
)

// publicKeySizes are the sizes in bytes of the public keys of clients.
var publicKeySizes = map[algorithm.KEM]int{algorithm.DHKEMP256: 65, algorithm.XWing: 1216}

// Sign signs what both sides have agreed on, with the key of the profile.
type Sign func(transcript []byte) (signature []byte, err error)

// BeginNative agrees on a secret with a client: it encapsulates the secret to the client's public key,
// and signs both shares. It returns an [*InputError] for a wrong request, the error of sign, and
// [ErrFull].
//
// Anybody who repeats the request of somebody else gets a session whose secret only the other one can
// compute.
func (s *Store) BeginNative(owner Owner, policy *profile.SessionPolicy, in Init, sign Sign) (Begun, error) {
	protocol, known := algorithm.NativeSession(in.KeyAgreement)
	switch {
	case !known:
		return Begun{}, inputError("keyAgreement", "is not known, expected the key agreement of a native version")
	case !policy.Allows(protocol):
		return Begun{}, inputError("keyAgreement", "means %s, expected one of the Protocols of the profile: %s", protocol, policy.Protocols())
	case in.ClientID != "":
		return Begun{}, inputError("clientId", "is not empty, which %s does not have", protocol)
	case in.Nonce != "":
		return Begun{}, inputError("nonce", "is not empty, which %s does not have", protocol)
	case in.Timestamp != "":
		return Begun{}, inputError("timestamp", "is not empty, which %s does not have", protocol)
	}
	peer, err := nativePeer(protocol, in.ClientPublicKey)
	if err != nil {
		return Begun{}, err
	}
	id, lifetime := newID(), policy.Lifetime(in.TTL)
	signing, _ := policy.Signing()
	owner.Profile = strings.Clone(owner.Profile) // so that the request is not kept
	context := nativeContext(protocol, owner.Profile, id, lifetime, in.ClientPublicKey)
	share, sender, err := hpke.NewSender(peer, hpke.HKDFSHA256(), hpke.ExportOnly(), []byte(context))
	if err != nil { // such as a point of small order
		return Begun{}, inputError("clientPublicKey", "is not a public key of %s", in.KeyAgreement)
	}
	secret, err := sender.Export(secretLabel, keySize)
	if err != nil {
		return Begun{}, err
	}
	defer clear(secret)
	public := base64.StdEncoding.EncodeToString(share)
	signature, err := sign([]byte(context + "\n" + public + "\n" + signing.Algorithm()))
	if err != nil {
		return Begun{}, err
	}
	now := s.now()
	made := &session{
		id: id, owner: owner, protocol: protocol, began: now, expires: now.Add(lifetime), window: policy.Window(), epoch: 1, numbers: &numbers{},
	}
	if err := s.add(made, secret); err != nil {
		return Begun{}, err
	}
	return Begun{
		ID: id, ServerPublicKey: public, EncAlg: algorithm.SessionCipher, Lifetime: lifetime, Protocol: protocol,
		Signature: base64.StdEncoding.EncodeToString(signature), SignatureAlgorithm: signing.Algorithm(),
	}, nil
}

func nativePeer(protocol algorithm.Session, text string) (hpke.PublicKey, error) {
	size := publicKeySizes[protocol.KEM()]
	encoded := make([]byte, size)
	if !decodeAll(encoded, text) {
		return nil, inputError("clientPublicKey", "is not valid, expected the %d bytes of a public key of %s in base64", size, protocol.Agreement())
	}
	kem, err := hpke.NewKEM(uint16(protocol.KEM()))
	if err != nil {
		return nil, err
	}
	peer, err := kem.NewPublicKey(encoded)
	if err != nil {
		return nil, inputError("clientPublicKey", "is not a public key of %s", protocol.Agreement())
	}
	return peer, nil
}

// nativeContext returns what both sides know before the server sends its share: the info of HPKE, and the beginning of the text
// that is signed. No line of it can have a line break.
func nativeContext(protocol algorithm.Session, profileName, id string, lifetime time.Duration, clientPublicKey string) string {
	seconds := strconv.FormatInt(int64(lifetime/time.Second), 10)
	return strings.Join([]string{protocol.String(), profileName, algorithm.SessionCipher, id, seconds, clientPublicKey}, "\n")
}

// expand replaces a secret by what HKDF-Expand with SHA-256 derives from it.
func expand(secret *[keySize]byte, label string) error {
	derived, err := hkdf.Expand(sha256.New, secret[:], label, keySize)
	copy(secret[:], derived)
	clear(derived)
	return err
}

// nativeAAD is what a request of a native session authenticates.
func nativeAAD(method, path, timestamp, sequence, kid string) string {
	return requestAAD(method, path, timestamp, sequence, kid)
}

// nativeReplyAAD is what a reply of a native session authenticates. The sequence is the sequence of the request.
func nativeReplyAAD(path, sequence, kid string) string {
	return "REPLY|" + path + "|" + sequence + "|" + kid
}

// readNative reads a request of a native session.
func (r *Request) readNative(m *message) bool {
	timestamp, isTime := readTimestamp(r.Timestamp)
	epoch, number, isSequence := readSequence(r.Sequence)
	m.native, m.clientPath, m.timestamp, m.epoch, m.number = true, m.path, timestamp, epoch, number
	m.additional = nativeAAD(r.Method, m.path, r.Timestamp, r.Sequence, r.Kid)
	isBody := m.setSealed(r.Body)
	return isTime && isSequence && isBody && r.IV+r.Tag+r.AAD+r.Nonce+r.IdempotencyKey+r.ClientID == ""
}

// readSequence reads the epoch of a key and the number of a request. Both begin with 1.
func readSequence(text string) (epoch, number int64, ok bool) {
	first, second, _ := strings.Cut(text, ".")
	epoch, isEpoch := readTimestamp(first)
	number, isNumber := readTimestamp(second)
	return epoch, number, isEpoch && isNumber
}

// SealNative encrypts the reply to a request of a native session. path and sequence are from
// [Opened]. It returns an [*InputError] for a wrong one, and [ErrEnded] as well for a request from
// before the session got another key.
func (s *Store) SealNative(owner Owner, policy *profile.SessionPolicy, id, path, sequence string, plaintext []byte) (Reply, error) {
	if normal, ok := NormalPath(path); !ok || normal != path {
		return Reply{}, inputError("clientPath", "is not valid, expected clientPath of OpenRequest")
	}
	epoch, _, ok := readSequence(sequence)
	if !ok {
		return Reply{}, inputError("sequence", "is not valid, expected sequence of OpenRequest")
	}
	var key [keySize]byte
	defer clear(key[:])
	found := s.find(owner, policy, id, &key)
	if found == nil || !found.isOfEpoch(epoch) || !found.countReply(policy) {
		return Reply{}, ErrEnded
	}
	if err := expand(&key, replyLabel); err != nil {
		return Reply{}, err
	}
	aead, err := s.gcm(key[:])
	if err != nil {
		return Reply{}, err
	}
	reply := Reply{Kid: kidPrefix + id, EncAlg: algorithm.SessionCipher, Sequence: sequence, Protocol: found.protocol}
	sealed := make([]byte, 0, ivSize+len(plaintext)+tagSize)
	reply.Body = aead.Seal(sealed, nil, plaintext, []byte(nativeReplyAAD(path, sequence, reply.Kid)))
	return reply, nil
}

// Rekey gives a native session its next key and overwrites the present key. The request authenticates
// with the next key, and has no plaintext. It returns [ErrRefused] as Open does.
func (s *Store) Rekey(owner Owner, policy *profile.SessionPolicy, r *Request) (Opened, error) {
	m, formed := r.read()
	next := s.decoy
	defer clear(next[:])
	found := s.find(owner, policy, m.id, &next)
	if err := expand(&next, rekeyLabel); err != nil {
		return Opened{}, err
	}
	key := next
	defer clear(key[:])
	if err := expand(&key, requestLabel); err != nil {
		return Opened{}, err
	}
	aead, err := s.gcm(key[:])
	if err != nil {
		return Opened{}, err
	}
	plaintext, err := aead.Open(nil, nil, m.sealed, []byte(m.additional))
	clear(plaintext)
	if !formed || !m.native || err != nil || found == nil || len(plaintext) > 0 || !s.advance(found, policy, &m, &next) {
		return Opened{}, ErrRefused
	}
	return Opened{ID: m.id, Protocol: found.protocol, Path: m.path, ClientPath: m.clientPath, Sequence: r.Sequence}, nil
}

// advance gives a session its next key, if an authentic request has the next epoch.
func (s *Store) advance(found *session, policy *profile.SessionPolicy, m *message, next *[keySize]byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found.mu.Lock()
	defer found.mu.Unlock()
	if found.ended || m.epoch != found.epoch+1 || !found.isInWindow(m, policy, s.now()) {
		return false
	}
	copy(s.slot(found.key), next[:])
	found.epoch, found.numbers = m.epoch, &numbers{}
	found.numbers.accept(m.number)
	found.opened, found.sealed = 1, 0
	return true
}
