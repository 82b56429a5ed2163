// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Caller is the caller by the token of an issuer.
type Caller struct {
	// Issuer and Subject together name the caller. Neither is empty.
	Issuer, Subject string
	// ClientID is the program that the caller uses: the claim client_id (RFC 9068), or else azp (OpenID Connect). It
	// may be empty.
	ClientID string
	// Claims are all claims of the token. Numbers are of the type float64.
	Claims map[string]any
	// Expires is when the token expires, without the skew.
	Expires time.Time
	// ProofKey is the key that the caller has proven to have: *ecdsa.PublicKey, *rsa.PublicKey or ed25519.PublicKey. It
	// is nil for a token that is bound to no key.
	ProofKey crypto.PublicKey
	// ProofThumbprint is the thumbprint of ProofKey (RFC 7638, with SHA-256, in base64url), or empty.
	ProofThumbprint string
}

// Request has the parts of a request that the verifier reads.
type Request struct {
	// Authorization is the value of the header Authorization. It is empty if there is none.
	Authorization string
	// Proofs are the values of the headers DPoP.
	Proofs []string
	// Method is the method of the request by HTTP. It is POST for gRPC.
	Method string
	// URL is the URL of the request, or its escaped path. Only the path is used. Scheme and host come from
	// [Config].
	URL string
}

// FromHTTP returns what the verifier reads of a request by HTTP. It is an [*Error] if the request has more than one
// header Authorization.
func FromHTTP(r *http.Request) (Request, error) {
	values := r.Header.Values("Authorization")
	if len(values) > 1 {
		return Request{}, &Error{Reason: InvalidRequest, text: fmt.Sprintf("found %d headers Authorization, expected one", len(values))}
	}
	request := Request{Proofs: r.Header.Values("DPoP"), Method: r.Method, URL: r.URL.EscapedPath()}
	if len(values) == 1 {
		request.Authorization = values[0]
	}
	return request, nil
}

// Verifier checks who calls. It is safe for concurrent use.
type Verifier struct {
	config  Config
	bases   []base
	issuers map[string]*keySource
	replays *replays
	// signatures remembers the valid signatures of tokens. Proofs are not remembered, because each proof is new.
	signatures *recent[struct{}]
	// proofKeys are the keys of valid proofs, by their text.
	proofKeys *recent[publicKey]
	// plain says that an issuer has PlainBearer.
	plain bool
}

// New returns a verifier. It makes no connection; see [Verifier.Fetch]. [Verifier.Close] ends what it does in the background.
func New(config Config) (*Verifier, error) {
	bases, err := config.complete()
	if err != nil {
		return nil, err
	}
	v := &Verifier{config: config, bases: bases, issuers: make(map[string]*keySource, len(config.Issuers)), signatures: newRecent[struct{}](rememberedTokens), proofKeys: newRecent[publicKey](rememberedKeys)}
	if v.replays = config.Used.replays; v.replays == nil {
		v.replays = newReplays(config.Replays, config.ProofAge+config.Skew)
	}
	for i, settings := range config.Issuers {
		if v.issuers[settings.URL], err = newKeySource(settings, config.Now, config.Log); err != nil {
			return nil, fmt.Errorf("field Issuers[%d]: %w", i, err)
		}
		v.plain = v.plain || settings.PlainBearer
	}
	return v, nil
}

// Close ends requests to issuers and waits for their end. Verify must not be called afterwards.
func (v *Verifier) Close() {
	for _, i := range v.issuers {
		i.close()
	}
}

// Fetch gets the keys of all issuers that have none yet. It returns how many issuers have keys. Its error names the issuers
// without keys. A service may call it before it reports that it is ready; without it, the first calls wait for the keys.
func (v *Verifier) Fetch(ctx context.Context) (known int, err error) {
	var missing []error
	for _, i := range v.issuers {
		if _, err := i.current(ctx); err != nil {
			missing = append(missing, fmt.Errorf("issuer %s: %w", i.URL, err))
		}
	}
	return len(v.issuers) - len(missing), errors.Join(missing...)
}

// Verify returns who calls. Its error is an [*Error].
func (v *Verifier) Verify(ctx context.Context, request Request) (Caller, error) {
	scheme, text, refused := splitAuthorization(request.Authorization)
	if refused != nil {
		return Caller{}, refused
	}
	found, refused := v.verify(ctx, request, scheme, text)
	if refused != nil {
		if scheme == schemeDPoP {
			refused.proof = true
		}
		return Caller{}, refused
	}
	return found, nil
}

func (v *Verifier) verify(ctx context.Context, request Request, scheme, text string) (Caller, *Error) {
	token, refused := openToken(text)
	if refused != nil {
		return Caller{}, refused
	}
	from := v.issuers[token.claims.issuer]
	if from == nil {
		return Caller{}, invalidToken("the token is of an issuer that this service does not trust")
	}
	if refused := v.checkToken(ctx, token, from); refused != nil {
		return Caller{}, refused
	}
	found := Caller{
		Issuer: token.claims.issuer, Subject: token.claims.subject, ClientID: token.claims.client(),
		Claims: token.all, Expires: token.claims.expires,
	}
	bound, refused := token.claims.boundTo()
	if refused != nil {
		return Caller{}, refused
	}
	if scheme == schemeBearer && (bound == "" || !from.ProofWithBearer || len(request.Proofs) == 0) {
		return found, checkPlain(from, bound, len(request.Proofs))
	}
	if bound == "" {
		return Caller{}, invalidToken("the token is bound to no key, and the scheme DPoP needs a token that is bound to a key")
	}
	proof, refused := v.checkProof(from, request, text, bound)
	if refused != nil {
		return Caller{}, refused
	}
	switch v.replays.add(proof.identity(bound), identityOf(found.Issuer, found.Subject), proof.issued(), v.config.Now()) {
	case replayed:
		return Caller{}, invalidProof("the proof was used before")
	case forgotten:
		return Caller{}, unavailable("the clock of this service was set back, and a proof of that time may have been used before")
	case full:
		return Caller{}, unavailable("this service has no room to remember more proofs at this time")
	}
	found.ProofKey, found.ProofThumbprint = proof.key.public, bound
	return found, nil
}

// checkPlain decides about a token without a proof.
func checkPlain(from *keySource, bound string, proofs int) *Error {
	switch {
	case bound != "":
		return invalidToken("the token is bound to a key: send it with the scheme DPoP and a proof")
	case proofs > 0:
		return &Error{Reason: InvalidRequest, text: "found a DPoP proof with a token that is bound to no key"}
	case !from.PlainBearer:
		return invalidToken("the token is bound to no key, and this service accepts only bound tokens of this issuer")
	}
	return nil
}

// identityOf returns a hash of texts. Lengths keep different texts apart.
func identityOf(texts ...string) identity {
	hash := sha256.New()
	for _, text := range texts {
		_, _ = fmt.Fprintf(hash, "%d:%s", len(text), text) // a hash never fails
	}
	return identity(hash.Sum(nil)[:len(identity{})])
}

// The schemes of the header Authorization.
const schemeBearer, schemeDPoP = "bearer", "dpop"

// splitAuthorization returns scheme and token of the header Authorization (RFC 9110, section 11.4, and RFC 6750, section 2.1).
func splitAuthorization(value string) (scheme, token string, refused *Error) {
	if value == "" {
		return "", "", &Error{Reason: Missing, text: "found no header Authorization, expected an access token"}
	}
	scheme, token, _ = strings.Cut(value, " ")
	scheme = strings.ToLower(scheme)
	if scheme != schemeBearer && scheme != schemeDPoP {
		return "", "", &Error{Reason: Missing, text: "found another scheme in the header Authorization, expected DPoP or Bearer"}
	}
	token = strings.TrimLeft(token, " ")
	if len(token) > maxToken {
		return "", "", invalidToken(fmt.Sprintf("the token is longer than %d bytes", maxToken))
	}
	return scheme, token, nil
}

// hashOf returns the claim ath of a token (RFC 9449, section 4.2).
func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
