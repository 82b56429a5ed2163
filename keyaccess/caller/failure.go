// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Reason is why a call is refused.
type Reason int

// The reasons.
const (
	// Missing says that the request has no credentials.
	Missing Reason = iota + 1
	// InvalidRequest says that the headers of the request contradict each other or cannot be read.
	InvalidRequest
	// InvalidToken says that the access token is not accepted.
	InvalidToken
	// InvalidProof says that the DPoP proof is missing or not accepted.
	InvalidProof
	// Unavailable says that the credentials cannot be checked at this time: the keys of the issuer are not available, or the table
	// of proofs is full. The caller may try again.
	Unavailable
)

// Error is why [Verifier.Verify] refuses a call. Its text has no part of what the caller sent, and may be sent to the
// caller.
type Error struct {
	Reason Reason
	text   string
	// proof says that the request used DPoP, so the challenge of DPoP gets the error.
	proof bool
}

func (e *Error) Error() string { return e.text }

// Status returns the status of the reply by HTTP: 400, 401 or 503.
func (e *Error) Status() int {
	switch e.Reason {
	case InvalidRequest:
		return http.StatusBadRequest
	case Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusUnauthorized
}

// code returns the error of RFC 6750, section 3.1, or RFC 9449, section 7.1. It is empty for a request
// without credentials.
func (e *Error) code() string {
	switch e.Reason {
	case InvalidRequest:
		return "invalid_request"
	case InvalidToken:
		return "invalid_token"
	case InvalidProof:
		return "invalid_dpop_proof"
	}
	return ""
}

// Challenges returns the values of the header WWW-Authenticate for an error of [Verifier.Verify] (RFC 6750, section 3,
// and RFC 9449, section 7.1). There are none if the error is of another kind, or [Unavailable].
func (v *Verifier) Challenges(err error) []string {
	refused := (*Error)(nil)
	if !errors.As(err, &refused) || refused.Reason == Unavailable {
		return nil
	}
	details := ""
	if code := refused.code(); code != "" {
		details = fmt.Sprintf("error=%q, error_description=%q", code, refused.text)
	}
	var challenges []string
	if len(v.bases) > 0 {
		challenge := "DPoP "
		if details != "" && (refused.proof || !v.plain) {
			challenge += details + ", "
		}
		challenges = append(challenges, challenge+`algs="`+strings.Join(Algorithms, " ")+`"`)
	}
	if v.plain {
		challenge := "Bearer"
		if details != "" && (!refused.proof || len(v.bases) == 0) {
			challenge += " " + details
		}
		challenges = append(challenges, challenge)
	}
	return challenges
}

func invalidToken(text string) *Error { return &Error{Reason: InvalidToken, text: text} }
func invalidProof(text string) *Error { return &Error{Reason: InvalidProof, text: text, proof: true} }
func unavailable(text string) *Error  { return &Error{Reason: Unavailable, text: text} }
