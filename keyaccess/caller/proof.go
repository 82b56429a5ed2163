// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/json"

	"github.com/crypto-broker/crypto-broker-operator/broker/session"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/jws"
)

// maxProofID is the size in bytes of the longest jti of a proof.
const maxProofID = 256

// proof is a DPoP proof (RFC 9449, section 4.2).
type proof struct {
	key    publicKey
	claims proofClaims
}

type proofClaims struct {
	ID       string   `json:"jti"`
	Method   string   `json:"htm"`
	URL      string   `json:"htu"`
	IssuedAt *float64 `json:"iat"`
	Hash     string   `json:"ath"`
}

// identity identifies a proof in the table of proofs. A client chooses jti, so it is unique for
// one key only.
func (p *proof) identity(thumbprint string) identity { return identityOf(thumbprint, p.claims.ID) }

// issued returns the time of a proof that checkProof has accepted.
func (p *proof) issued() time.Time {
	issued, _ := numericDate(*p.claims.IssuedAt)
	return issued
}

// checkProof checks the proof of a request with a token, as RFC 9449, section 4.3, says. It does not look for replays.
func (v *Verifier) checkProof(from *keySource, request Request, token, bound string) (*proof, *Error) {
	if len(request.Proofs) != 1 {
		return nil, invalidProof(fmt.Sprintf("found %d headers DPoP, expected one", len(request.Proofs)))
	}
	if len(request.Proofs[0]) > maxProof {
		return nil, invalidProof(fmt.Sprintf("the proof is longer than %d bytes", maxProof))
	}
	s, err := jws.Open(request.Proofs[0])
	if err != nil {
		return nil, invalidProof("the proof " + err.Error())
	}
	switch {
	case s.Header.Type != "dpop+jwt":
		return nil, invalidProof("the proof has another type, expected dpop+jwt")
	case !slices.Contains(Algorithms, s.Header.Algorithm):
		return nil, invalidProof("the proof has an algorithm that this service does not accept")
	case s.Header.Key == nil:
		return nil, invalidProof("the proof has no key in its header")
	}
	text := source(sha256.Sum256(s.Header.Key))
	key, known := v.proofKeys.get(text)
	if !known {
		if key, err = parseKey(s.Header.Key); errors.Is(err, errPrivate) {
			return nil, invalidProof("the proof has a private key in its header")
		} else if err != nil {
			return nil, invalidProof("the proof has a key that this service does not accept")
		}
		key.id = "" // dropped, because nobody needs it and it may be long
	}
	p := &proof{key: key}
	// The thumbprint comes first: it costs less than a signature.
	if p.key.thumbprint != bound {
		return nil, invalidProof("the proof is signed with another key than the key that the token is bound to")
	}
	if err := p.key.verify(s); err != nil {
		return nil, invalidProof("the proof " + err.Error())
	}
	if !known { // only the owner of a good token can take a place
		v.proofKeys.add(text, p.key)
	}
	if json.Unmarshal(s.Payload, &p.claims) != nil {
		return nil, invalidProof("the proof has claims that cannot be read")
	}
	return p, v.checkProofClaims(from, &p.claims, request, token)
}

func (v *Verifier) checkProofClaims(from *keySource, c *proofClaims, request Request, token string) *Error {
	now := v.config.Now()
	switch {
	case c.ID == "" || len(c.ID) > maxProofID:
		return invalidProof(fmt.Sprintf("the proof has no jti, or one of more than %d bytes", maxProofID))
	case c.Method == "" || c.Method != request.Method:
		return invalidProof("the proof is for another method")
	case !v.isFor(c.URL, request.URL) && !isForPath(c.URL, request.URL):
		return invalidProof("the proof is for another URL")
	case !from.ProofWithPath && isForPath(c.URL, request.URL):
		return invalidProof("the proof is for a path without scheme and host, expected the URL, or proofWithPath in the configuration of this service")
	case c.Hash != hashOf(token):
		return invalidProof("the proof is for another token")
	case c.IssuedAt == nil:
		return invalidProof("the proof has no time")
	}
	switch issued, valid := numericDate(*c.IssuedAt); {
	case !valid:
		return invalidProof("the proof has claims that cannot be read")
	case issued.After(now.Add(v.config.Skew)):
		return invalidProof("the proof is from the future")
	case issued.Before(now.Add(-v.config.ProofAge)):
		return invalidProof("the proof is too old")
	}
	return nil
}

// isFor reports whether the URL of a proof is the URL of a request: one of the URLs of the service with the path of the
// request. Both are compared in normal form, without query and fragment (RFC 9449, section 4.3, and RFC 3986, section 6.2).
func (v *Verifier) isFor(claimed, requested string) bool {
	requested = pathOf(requested)
	scheme, rest, absolute := strings.Cut(claimed, "://")
	if !absolute {
		return false
	}
	authority, path := splitAuthority(rest)
	origin := Origin(scheme, authority)
	claimedPath, clear := session.NormalPath(path)
	if !clear {
		return false
	}
	return slices.ContainsFunc(v.bases, func(b base) bool {
		requestedPath, clear := session.NormalPath(b.path + requested)
		return clear && b.origin == origin && requestedPath == claimedPath
	})
}

// isForPath reports whether a proof is for the path of a request alone, in normal form.
func isForPath(claimed, requested string) bool {
	claimedPath, clear := session.NormalPath(claimed)
	requestedPath, alsoClear := session.NormalPath(pathOf(requested))
	return clear && alsoClear && claimedPath == requestedPath
}

// pathOf returns the path of a URL, or a path itself, without query and fragment.
func pathOf(requested string) string {
	if _, rest, absolute := strings.Cut(requested, "://"); absolute {
		_, requested = splitAuthority(rest)
	}
	return withoutQuery(requested)
}

// splitAuthority splits what comes after the scheme of a URL into authority and path. An empty path is "/".
func splitAuthority(rest string) (authority, path string) {
	rest = withoutQuery(rest)
	if slash := strings.IndexByte(rest, '/'); slash >= 0 {
		return rest[:slash], rest[slash:]
	}
	return rest, "/"
}

func withoutQuery(text string) string {
	if end := strings.IndexAny(text, "?#"); end >= 0 {
		return text[:end]
	}
	return text
}

// Origin returns scheme and authority of a URL in normal form: lower case, without the port that the scheme implies.
func Origin(scheme, authority string) string {
	scheme, authority = strings.ToLower(scheme), strings.ToLower(authority)
	switch scheme {
	case "https":
		authority = strings.TrimSuffix(authority, ":443")
	case "http":
		authority = strings.TrimSuffix(authority, ":80")
	}
	return scheme + "://" + strings.TrimSuffix(authority, ":")
}
