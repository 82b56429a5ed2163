// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto"
	"crypto/hpke"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Agreement is a key agreement of the native versions, by its name in the protocol.
type Agreement string

// The key agreements: DHKEM(P-256, HKDF-SHA256) (RFC 9180), and MLKEM768-X25519, also known as X-Wing
// (draft-ietf-hpke-pq), which is made to resist quantum computers.
const (
	HPKEP256  Agreement = "HPKE_P256"
	HPKEXWing Agreement = "HPKE_XWING"
)

// suites are the protocol and the mechanism of each agreement.
var suites = map[Agreement]struct {
	protocol string
	kem      uint16
}{
	HPKEP256:  {"session-hpke-p256", 0x0010},
	HPKEXWing: {"session-hpke-x-wing", 0x647a},
}

// encAlg is the cipher of all versions: AES-256-GCM.
const encAlg = "A256GCM"

// ErrNotAuthentic means that a message is not from the other side of the session, or was changed.
var ErrNotAuthentic = errors.New("session: the message is not authentic")

// Config is what a client knows beforehand.
type Config struct {
	// Profile is the name of the broker's profile.
	Profile string
	// Agreement is [HPKEP256] or [HPKEXWing].
	Agreement Agreement
	// PublicKey is the public key that signs for the profile, such as PublicKey of an
	// [crypto/x509.Certificate]. The client gets it in a way that it trusts, and never with the
	// answer.
	PublicKey crypto.PublicKey
	// SignatureAlgorithm is the algorithm of the profile, such as "ecdsa-with-sha-256" or
	// "ed25519". Package session does not verify ML-DSA.
	SignatureAlgorithm string
	// Lifetime is the lifetime to ask for, in whole seconds. The broker may choose another one.
	Lifetime time.Duration
}

// InitRequest is the body of the request that begins a session, as JSON.
type InitRequest struct {
	KeyAgreement    string `json:"keyAgreement"`
	ClientPublicKey string `json:"clientPublicKey"`
	TTLSec          uint32 `json:"ttlSec"`
}

// InitReply is the body of the answer, as JSON.
type InitReply struct {
	SessionID          string `json:"sessionId"`
	ServerPublicKey    string `json:"serverPublicKey"`
	EncAlg             string `json:"encAlg"`
	ExpiresInSec       uint32 `json:"expiresInSec"`
	Signature          string `json:"signature"`
	SignatureAlgorithm string `json:"signatureAlgorithm"`
}

// Handshake is a session whose answer is awaited. It is for one session.
type Handshake struct {
	config Config
	own    hpke.PrivateKey
	public string
}

// Begin makes a key pair for one session.
func Begin(config Config) (*Handshake, error) {
	suite, known := suites[config.Agreement]
	if !known {
		return nil, fmt.Errorf("session: found the agreement %q, expected %s or %s", config.Agreement, HPKEP256, HPKEXWing)
	}
	if config.Profile == "" {
		return nil, errors.New("session: Profile is empty, expected the name of the broker's profile")
	}
	if _, err := verifierOf(config.PublicKey, config.SignatureAlgorithm); err != nil {
		return nil, err
	}
	if s := config.Lifetime; s < 0 || s%time.Second != 0 || s > 24*time.Hour {
		return nil, fmt.Errorf("session: found the lifetime %s, expected whole seconds up to a day", s)
	}
	kem, err := hpke.NewKEM(suite.kem)
	if err != nil {
		return nil, fmt.Errorf("session: find the mechanism: %w", err)
	}
	own, err := kem.GenerateKey()
	if err != nil {
		return nil, fmt.Errorf("session: make a key: %w", err)
	}
	return &Handshake{config, own, base64.StdEncoding.EncodeToString(own.PublicKey().Bytes())}, nil
}

// Request returns what to send.
func (h *Handshake) Request() InitRequest {
	return InitRequest{KeyAgreement: string(h.config.Agreement), ClientPublicKey: h.public, TTLSec: uint32(h.config.Lifetime / time.Second)} //nolint:gosec // Begin checks it
}

// Finish verifies the answer and returns the session. It returns [ErrNotAuthentic] if the key of the
// profile has not signed the answer to this request.
func (h *Handshake) Finish(reply InitReply) (*Session, error) {
	if reply.SignatureAlgorithm != h.config.SignatureAlgorithm || reply.EncAlg != encAlg || strings.Contains(reply.SessionID, "\n") {
		return nil, ErrNotAuthentic
	}
	share, err := base64.StdEncoding.Strict().DecodeString(reply.ServerPublicKey)
	if err != nil {
		return nil, ErrNotAuthentic
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(reply.Signature)
	if err != nil {
		return nil, ErrNotAuthentic
	}
	seconds := strconv.FormatUint(uint64(reply.ExpiresInSec), 10)
	context := strings.Join([]string{suites[h.config.Agreement].protocol, h.config.Profile, encAlg, reply.SessionID, seconds, h.public}, "\n")
	verify, err := verifierOf(h.config.PublicKey, h.config.SignatureAlgorithm)
	if err != nil {
		return nil, err
	}
	if !verify([]byte(context+"\n"+reply.ServerPublicKey+"\n"+reply.SignatureAlgorithm), signature) {
		return nil, ErrNotAuthentic
	}
	recipient, err := hpke.NewRecipient(share, h.own, hpke.HKDFSHA256(), hpke.ExportOnly(), []byte(context))
	if err != nil {
		return nil, ErrNotAuthentic
	}
	secret, err := recipient.Export("secret", secretSize)
	if err != nil {
		return nil, fmt.Errorf("session: export the secret: %w", err)
	}
	defer clear(secret)
	s := &Session{id: reply.SessionID, epoch: 1, expires: time.Now().Add(time.Duration(reply.ExpiresInSec) * time.Second)}
	copy(s.secret[:], secret)
	return s, nil
}
