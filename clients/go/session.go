// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"bytes"
	"context"
	"time"
)

var (
	initSession  = newSessionOperation("InitSession")
	openRequest  = newSessionOperation("OpenRequest")
	sealReply    = newSessionOperation("SealReply")
	closeSession = newSessionOperation("CloseSession")
	rekeySession = newSessionOperation("RekeySession")
)

// newSessionOperation returns an operation of cryptobroker.session.v1, which Exchange does not carry.
func newSessionOperation(name string) *operation {
	return &operation{name: name, method: "/cryptobroker.session.v1.SessionService/" + name, metadata: sessionMetadata}
}

// The numbers of the fields in requests and replies for sessions.
const (
	sessionMetadata number = 1 // in every reply

	initAgreement, initPublicKey, initTTL, initNonce, initTimestamp number = 2, 3, 4, 5, 6
	initClientID, initMetadata                                      number = 7, 8
	begunID, begunPublicKey, begunEncAlg, begunExpires              number = 2, 3, 4, 5
	begunDescriptor, begunSignature, begunSignatureAlgorithm        number = 6, 7, 8

	openMethod, openPath, openKid, openEncAlg, openIV, openTag, openAAD                 number = 2, 3, 4, 5, 6, 7, 8
	openNonce, openTimestamp, openIdempotencyKey, openClientID                          number = 9, 10, 11, 12
	openBody, openMetadata, openSequence                                                number = 13, 14, 15
	requestOpenedPlaintext, requestOpenedID, requestOpenedPath, requestOpenedClientPath number = 2, 3, 4, 5
	requestOpenedClientID, requestOpenedDescriptor, requestOpenedSequence               number = 6, 7, 8

	sealID, sealPath, sealPlaintext, sealMetadata, sealSequence                      number = 2, 3, 4, 5, 6
	replySealedKid, replySealedEncAlg, replySealedIV, replySealedTag, replySealedAAD number = 2, 3, 4, 5, 6
	replySealedNonce, replySealedTimestamp, replySealedIdempotencyKey                number = 7, 8, 9
	replySealedClientID, replySealedBody, replySealedDescriptor, replySealedSequence number = 10, 11, 12, 13
	closeID, closeMetadata                                                           number = 2, 3

	rekeyMethod, rekeyPath, rekeyKid, rekeyEncAlg, rekeyTimestamp, rekeySequence, rekeyBody, rekeyMetadata number = 2, 3, 4, 5, 6, 7, 8, 9
	rekeyedID, rekeyedPath, rekeyedClientPath, rekeyedSequence, rekeyedDescriptor                          number = 2, 3, 4, 5, 6
)

// InitSessionRequest is the request of a client of the application for an encrypted session, with the
// texts that the client sent.
type InitSessionRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// KeyAgreement, ClientPublicKey and TTLSeconds are fields of the body.
	KeyAgreement, ClientPublicKey string
	TTLSeconds                    uint32
	// Nonce, Timestamp and ClientID are the headers X-Nonce, X-Timestamp and X-ClientId. ClientID is
	// empty in version 1 of the protocol, and all three are empty in the native versions.
	Nonce, Timestamp, ClientID string
}

// InitSessionResult is the result of [Client.InitSession], with the fields of the reply to the client.
type InitSessionResult struct {
	SessionID, ServerPublicKey, EncAlg string
	ExpiresIn                          time.Duration
	// Signature is the signature of a native version in base64, and SignatureAlgorithm such as
	// "ecdsa-with-sha-256".
	Signature, SignatureAlgorithm string
	// Algorithm is the version of the protocol, such as "session-v1".
	Algorithm string
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// InitSession agrees on a key with a client of the application. If the call is repeated, the broker
// begins another session.
func (c *Client) InitSession(ctx context.Context, r InitSessionRequest) (result InitSessionResult, err error) {
	p, err := c.begin(ctx, initSession, r.Profile, len(r.KeyAgreement)+len(r.ClientPublicKey)+len(r.Nonce)+len(r.Timestamp)+len(r.ClientID))
	if err != nil {
		return result, err
	}
	defer c.end(p)
	b := appendString(*p.request, initAgreement, r.KeyAgreement)
	b = appendString(b, initPublicKey, r.ClientPublicKey)
	b = appendUint(b, initTTL, uint64(r.TTLSeconds))
	b = appendString(b, initNonce, r.Nonce)
	b = appendString(b, initTimestamp, r.Timestamp)
	b = appendString(b, initClientID, r.ClientID)
	*p.request = p.trace.appendMetadata(b, initMetadata)
	if err := c.do(ctx, p); err != nil {
		return result, err
	}
	result.Deprecation, err = c.read(p, func(f *fields) (err error) {
		switch f.number {
		case begunID:
			result.SessionID = string(f.bytes)
		case begunPublicKey:
			result.ServerPublicKey = string(f.bytes)
		case begunEncAlg:
			result.EncAlg = string(f.bytes)
		case begunExpires:
			result.ExpiresIn = time.Duration(uint32(f.uint)) * time.Second //nolint:gosec // the field has 32 bits
		case begunSignature:
			result.Signature = string(f.bytes)
		case begunSignatureAlgorithm:
			result.SignatureAlgorithm = string(f.bytes)
		case begunDescriptor:
			result.Algorithm, err = c.algorithm(f.bytes)
		}
		return err
	})
	if err == nil && (result.SessionID == "" || result.ServerPublicKey == "") {
		err = p.missing("session")
	}
	if err != nil {
		return InitSessionResult{}, err
	}
	return result, nil
}

// OpenRequestRequest is an encrypted request of a client of the application, with the texts that the
// client sent.
type OpenRequestRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// Method and Path are the method and the path of the HTTP request. Path has no query.
	Method, Path string
	// Kid and EncAlg are the headers X-Kid and X-Enc-Alg.
	Kid, EncAlg string
	// IV, Tag, AAD, Nonce and Timestamp are headers of version 1 of the protocol.
	IV, Tag, AAD, Nonce, Timestamp string
	// IdempotencyKey and ClientID are headers of version 2.
	IdempotencyKey, ClientID string
	// Sequence is the header X-Sequence of the native versions, which have Timestamp as well.
	Sequence string
	// Body has at most 1 MiB.
	Body []byte
}

// OpenRequestResult is the result of [Client.OpenRequest].
type OpenRequestResult struct {
	Plaintext []byte
	SessionID string
	// Path is the path in its normal form: the one to serve. ClientPath is for [Client.SealReply].
	Path, ClientPath string
	// ClientID is the client id of a session of version 2.
	ClientID string
	// Sequence is the sequence of a request of a native version, for [Client.SealReply].
	Sequence string
	// Algorithm is the version of the protocol, such as "session-v1".
	Algorithm string
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// OpenRequest decrypts a request of a session. The broker opens each request once. If the connection
// breaks while the broker opens a request, the client asks again, and the broker may refuse the request
// as opened before: then the client of the application has to send a new one.
func (c *Client) OpenRequest(ctx context.Context, r OpenRequestRequest) (result OpenRequestResult, err error) {
	texts := []struct {
		number number
		text   string
	}{
		{openMethod, r.Method}, {openPath, r.Path}, {openKid, r.Kid}, {openEncAlg, r.EncAlg}, {openIV, r.IV}, {openTag, r.Tag}, {openAAD, r.AAD},
		{openNonce, r.Nonce}, {openTimestamp, r.Timestamp}, {openIdempotencyKey, r.IdempotencyKey}, {openClientID, r.ClientID},
		{openSequence, r.Sequence},
	}
	size := len(r.Body)
	for _, t := range texts {
		size += len(t.text)
	}
	p, err := c.begin(ctx, openRequest, r.Profile, size)
	if err != nil {
		return result, err
	}
	defer c.end(p)
	b := *p.request
	for _, t := range texts {
		b = appendString(b, t.number, t.text)
	}
	b = appendBytes(b, openBody, r.Body)
	*p.request = p.trace.appendMetadata(b, openMetadata)
	if err := c.do(ctx, p); err != nil {
		return result, err
	}
	result.Deprecation, err = c.read(p, func(f *fields) (err error) {
		switch f.number {
		case requestOpenedPlaintext:
			result.Plaintext = bytes.Clone(f.bytes)
		case requestOpenedID:
			result.SessionID = string(f.bytes)
		case requestOpenedPath:
			result.Path = string(f.bytes)
		case requestOpenedClientPath:
			result.ClientPath = string(f.bytes)
		case requestOpenedClientID:
			result.ClientID = string(f.bytes)
		case requestOpenedSequence:
			result.Sequence = string(f.bytes)
		case requestOpenedDescriptor:
			result.Algorithm, err = c.algorithm(f.bytes)
		}
		return err
	})
	if err == nil && result.SessionID == "" {
		err = p.missing("session")
	}
	if err != nil {
		clear(result.Plaintext)
		return OpenRequestResult{}, err
	}
	return result, nil
}

// SealReplyRequest is a reply to a client of the application.
type SealReplyRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// SessionID, ClientPath and Sequence are from the [OpenRequestResult].
	SessionID, ClientPath, Sequence string
	// Plaintext has at most 1 MiB.
	Plaintext []byte
}

// SealReplyResult is the result of [Client.SealReply]: headers and body of the reply. Headers that are
// empty do not belong to the version of the protocol.
type SealReplyResult struct {
	Kid, EncAlg, IV, Tag, AAD, Nonce, Timestamp string
	IdempotencyKey, ClientID, Sequence          string
	Body                                        []byte
	// Algorithm is the version of the protocol, such as "session-v1".
	Algorithm string
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// SealReply encrypts a reply to a request of a session. If the call is repeated, the broker encrypts
// with another IV and another nonce.
func (c *Client) SealReply(ctx context.Context, r SealReplyRequest) (result SealReplyResult, err error) {
	p, err := c.begin(ctx, sealReply, r.Profile, len(r.SessionID)+len(r.ClientPath)+len(r.Sequence)+len(r.Plaintext))
	if err != nil {
		return result, err
	}
	defer c.end(p)
	b := appendString(*p.request, sealID, r.SessionID)
	b = appendString(b, sealPath, r.ClientPath)
	b = appendBytes(b, sealPlaintext, r.Plaintext)
	b = appendString(b, sealSequence, r.Sequence)
	*p.request = p.trace.appendMetadata(b, sealMetadata)
	if err := c.do(ctx, p); err != nil {
		return result, err
	}
	headers := map[number]*string{
		replySealedKid: &result.Kid, replySealedEncAlg: &result.EncAlg, replySealedIV: &result.IV, replySealedTag: &result.Tag, replySealedAAD: &result.AAD, replySealedNonce: &result.Nonce,
		replySealedTimestamp: &result.Timestamp, replySealedIdempotencyKey: &result.IdempotencyKey, replySealedClientID: &result.ClientID,
		replySealedSequence: &result.Sequence,
	}
	result.Deprecation, err = c.read(p, func(f *fields) (err error) {
		switch header := headers[f.number]; {
		case header != nil:
			*header = string(f.bytes)
		case f.number == replySealedBody:
			result.Body = bytes.Clone(f.bytes)
		case f.number == replySealedDescriptor:
			result.Algorithm, err = c.algorithm(f.bytes)
		}
		return err
	})
	if err == nil && result.Kid == "" {
		err = p.missing("session")
	}
	if err != nil {
		return SealReplyResult{}, err
	}
	return result, nil
}

// CloseSession ends a session, and the broker overwrites its key. It is no error if there is no such
// session. An empty profile stands for the profile of [WithProfile].
func (c *Client) CloseSession(ctx context.Context, profile, sessionID string) error {
	p, err := c.begin(ctx, closeSession, profile, len(sessionID))
	if err != nil {
		return err
	}
	defer c.end(p)
	*p.request = p.trace.appendMetadata(appendString(*p.request, closeID, sessionID), closeMetadata)
	if err := c.do(ctx, p); err != nil {
		return err
	}
	_, err = c.read(p, func(*fields) error { return nil })
	return err
}
