// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// InputError says what is wrong with a field of an [Init].
type InputError struct{ Field, Problem string }

// Error implements error.
func (e *InputError) Error() string { return "session: " + e.Field + " " + e.Problem }

func inputError(field, format string, args ...any) error {
	return &InputError{field, fmt.Sprintf(format, args...)}
}

// Init is the request of a client for a session, with the texts that the client sent.
type Init struct {
	KeyAgreement, ClientPublicKey string
	TTL                           time.Duration
	Nonce, Timestamp              string
	// ClientID is empty in version 1 of the protocol.
	ClientID string
}

// Begun is the answer to an [Init].
type Begun struct {
	ID, ServerPublicKey, EncAlg string
	Lifetime                    time.Duration
	Protocol                    algorithm.Session
	// Signature is in base64, and SignatureAlgorithm is a name such as "ecdsa-with-sha-256". Both are empty in
	// versions 1 and 2.
	Signature, SignatureAlgorithm string
}

// Begin agrees on a key with a client. It returns an [*InputError] for a wrong request, [ErrFull],
// and the errors of [Shared].
//
// It remembers no nonce: the request is not authenticated, so anybody could fill the memory. Anybody who
// repeats the request of somebody else gets a session whose key only the other one can compute.
func (s *Store) Begin(ctx context.Context, owner Owner, policy *profile.SessionPolicy, in Init) (Begun, error) {
	peer, protocol, err := s.readInit(policy, in)
	if err != nil {
		return Begun{}, err
	}
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return Begun{}, err
	}
	id := newID()
	key, err := deriveKey(own, peer, id, in.ClientID)
	if err != nil {
		return Begun{}, err
	}
	defer clear(key)
	now, lifetime := s.now(), policy.Lifetime(in.TTL)
	owner.Profile = strings.Clone(owner.Profile) // so that the request is not kept
	made := &session{
		id: id, owner: owner, protocol: protocol, clientID: strings.Clone(in.ClientID),
		began: now, expires: now.Add(lifetime), window: policy.Window(),
	}
	if err := s.keep(ctx, policy, made, key); err != nil {
		return Begun{}, err
	}
	public := base64.StdEncoding.EncodeToString(own.PublicKey().Bytes())
	return Begun{ID: id, ServerPublicKey: public, EncAlg: algorithm.SessionCipher, Lifetime: lifetime, Protocol: protocol}, nil
}

func (s *Store) readInit(policy *profile.SessionPolicy, in Init) (*ecdh.PublicKey, algorithm.Session, error) {
	protocol := algorithm.SessionV1
	if in.ClientID != "" {
		protocol = algorithm.SessionV2
	}
	const point = 65 // bytes of an uncompressed point on P-256 (SEC 1, section 2.3.3)
	encoded := make([]byte, point)
	fits := decodeAll(encoded, in.ClientPublicKey)
	at, isTime := readTimestamp(in.Timestamp)
	difference := at - s.now().UnixMilli()
	window := policy.Window().Milliseconds()
	switch {
	case !policy.Allows(protocol):
		return nil, 0, inputError("clientId", "means %s, expected one of the Protocols of the profile: %s", protocol, policy.Protocols())
	case in.ClientID != "" && !isClientID(in.ClientID):
		return nil, 0, inputError("clientId", `is not valid, expected 1 to %d letters, digits, "-", "_", "." and ":"`, maxToken)
	case in.KeyAgreement != algorithm.SessionKeyAgreement:
		return nil, 0, inputError("keyAgreement", "is another one, expected %s", algorithm.SessionKeyAgreement)
	case !isRequestNonce(in.Nonce):
		return nil, 0, inputError("nonce", `is not valid, expected 1 to %d letters, digits, "-" and "_", and no UUID of version 8`, maxToken)
	case !isTime:
		return nil, 0, inputError("timestamp", "is not valid, expected milliseconds since 1970")
	case difference > window || difference < -window:
		return nil, 0, inputError("timestamp", "is not within %s of the time of the broker", policy.Window())
	case !fits:
		return nil, 0, inputError("clientPublicKey", "is not valid, expected the %d bytes of an uncompressed point in base64", point)
	}
	peer, err := ecdh.P256().NewPublicKey(encoded)
	if err != nil {
		return nil, 0, inputError("clientPublicKey", "is not a point on P-256")
	}
	return peer, protocol, nil
}

// Opened is a request that is authentic and was not opened before.
type Opened struct {
	Plaintext []byte
	ID        string
	ClientID  string
	Protocol  algorithm.Session
	// Path is the path in its normal form, and ClientPath is the path that the client authenticates.
	Path, ClientPath string
	// Sequence is the sequence of a request of a native session. It is empty for other sessions.
	Sequence string
}

// Open decrypts a request. It returns [ErrRefused] or [ErrBusy], or an error of [Shared]. The
// caller overwrites the plaintext.
//
// It opens the request before it looks at time and nonce, so that nobody without the key can use up a nonce. It also tries to open
// requests of unknown sessions and malformed requests, with another key. So it takes the same steps to refuse a request, whatever
// is wrong with it.
func (s *Store) Open(ctx context.Context, owner Owner, policy *profile.SessionPolicy, r *Request) (Opened, error) {
	m, formed := r.read()
	key := s.decoy
	defer clear(key[:])
	found, err := s.lookup(ctx, owner, policy, m.id, &key)
	if err != nil {
		return Opened{}, err
	}
	if m.native {
		if err := expand(&key, requestLabel); err != nil {
			return Opened{}, err
		}
		if found != nil && found.protocol.IsNative() {
			m.protocol = found.protocol
		}
	}
	aead, err := s.gcm(key[:])
	if err != nil {
		return Opened{}, err
	}
	plaintext, err := aead.Open(make([]byte, 0, len(m.sealed)-ivSize-tagSize), nil, m.sealed, []byte(m.additional))
	if !formed || err != nil || found == nil || found.protocol != m.protocol || found.clientID != m.clientID {
		clear(plaintext)
		return Opened{}, s.refuse(ctx, found, policy, &m)
	}
	if err := s.acceptOnce(ctx, found, policy, &m); err != nil {
		clear(plaintext)
		return Opened{}, err
	}
	return Opened{
		Plaintext: plaintext, ID: m.id, ClientID: m.clientID, Protocol: m.protocol, Path: m.path, ClientPath: m.clientPath,
		Sequence: r.Sequence,
	}, nil
}

// Reply is an encrypted reply. The headers of the other version are empty.
type Reply struct {
	Kid, EncAlg                    string
	IV, Tag, AAD, Nonce, Timestamp string // version 1
	IdempotencyKey, ClientID       string // version 2
	Sequence                       string // native versions
	Body                           []byte
	Protocol                       algorithm.Session
}

// Seal encrypts a reply to a request with a path. It returns an [*InputError] for a wrong path,
// [ErrEnded], and the errors of [Shared].
func (s *Store) Seal(ctx context.Context, owner Owner, policy *profile.SessionPolicy, id, path string, plaintext []byte) (Reply, error) {
	if _, ok := NormalPath(path); !ok {
		return Reply{}, inputError("clientPath", "is not valid, expected clientPath of OpenRequest")
	}
	var key [keySize]byte
	defer clear(key[:])
	found, err := s.lookup(ctx, owner, policy, id, &key)
	if err == nil && found == nil {
		err = ErrEnded
	}
	if err == nil && found.protocol.IsNative() {
		err = inputError("sequence", "is missing, expected sequence of OpenRequest")
	}
	if err == nil {
		err = found.mayReply(ctx, policy)
	}
	if err != nil {
		return Reply{}, err
	}
	aead, err := s.gcm(key[:])
	if err != nil {
		return Reply{}, err
	}
	kid, nonce, timestamp := kidPrefix+id, newReplyNonce(), strconv.FormatInt(s.now().UnixMilli(), 10)
	reply := Reply{Kid: kid, EncAlg: algorithm.SessionCipher, Protocol: found.protocol}
	sealed := make([]byte, 0, ivSize+len(plaintext)+tagSize)
	if found.protocol == algorithm.SessionV2 {
		reply.IdempotencyKey, reply.ClientID = timestamp+"."+nonce, found.clientID
		reply.Body = aead.Seal(sealed, nil, plaintext, []byte(aadV2(timestamp, nonce, kid, found.clientID)))
		return reply, nil
	}
	additional := []byte(replyAAD(path, timestamp, nonce, kid))
	sealed = aead.Seal(sealed, nil, plaintext, additional)
	text := base64.StdEncoding
	reply.IV, reply.Tag = text.EncodeToString(sealed[:ivSize]), text.EncodeToString(sealed[len(sealed)-tagSize:])
	reply.AAD, reply.Nonce, reply.Timestamp = text.EncodeToString(additional), nonce, timestamp
	ciphertext := sealed[ivSize : len(sealed)-tagSize]
	reply.Body = text.AppendEncode(make([]byte, 0, text.EncodedLen(len(ciphertext))), ciphertext)
	return reply, nil
}
