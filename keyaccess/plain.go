// SPDX-License-Identifier: Apache-2.0

package keyaccess

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/limit"
)

// Paths of requests with plain JSON, which clients without Connect and gRPC use.
const (
	pathPublicKey       = "/kas/v2/kas_public_key"
	pathLegacyPublicKey = "/kas/kas_public_key"
	pathRewrap          = "/kas/v2/rewrap"
	pathConfiguration   = "/.well-known/opentdf-configuration"
)

func (s *Service) servePublicKey(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	response, err := s.publicKey(&kas.PublicKeyRequest{Algorithm: query.Get("algorithm"), Fmt: query.Get("fmt"), V: query.Get("v")})
	writeMessage(w, r, response, err)
}

func (s *Service) serveLegacyPublicKey(w http.ResponseWriter, r *http.Request) {
	text, err := s.legacyPublicKey(&kas.LegacyPublicKeyRequest{Algorithm: r.URL.Query().Get("algorithm")})
	writeJSON(w, r, text, err)
}

func (s *Service) serveRewrap(w http.ResponseWriter, r *http.Request) {
	response, err := s.plainRewrap(w, r)
	writeMessage(w, r, response, err)
}

func (s *Service) plainRewrap(w http.ResponseWriter, r *http.Request) (*kas.RewrapResponse, error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.Limits.BodyBytes)))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("found a request of more than %d bytes", s.Limits.BodyBytes))
	}
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("the request ends too early"))
	}
	in := &kas.RewrapRequest{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, in); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("found a request that is no JSON object with the field signedRequestToken"))
	}
	return s.rewrap(r.Context(), in.GetSignedRequestToken())
}

func (s *Service) serveConfiguration(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, r, s.configuration(), nil)
}

func writeMessage(w http.ResponseWriter, r *http.Request, message proto.Message, err error) {
	if err != nil {
		_ = jsonErrors{}.Write(w, r, err) // the client has gone if this fails
		return
	}
	text, err := protojson.Marshal(message)
	writeJSON(w, r, json.RawMessage(text), err)
}

func writeJSON(w http.ResponseWriter, r *http.Request, body any, err error) {
	if err != nil {
		_ = jsonErrors{}.Write(w, r, err) // the client has gone if this fails
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // the client has gone if this fails
}

// jsonErrors writes errors as the JSON of gRPC's status, as OpenTDF's platform does for plain JSON.
type jsonErrors struct{}

// Write implements errorWriter.
func (jsonErrors) Write(w http.ResponseWriter, _ *http.Request, err error) error {
	code, text := connect.CodeInternal, "internal error"
	if known := (*connect.Error)(nil); errors.As(err, &known) {
		code, text = known.Code(), known.Message()
	}
	w.Header().Set("Content-Type", "application/json")
	status := statusOf(code)
	if tooMany := (*limit.Refused)(nil); errors.As(err, &tooMany) {
		status = http.StatusTooManyRequests
	}
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(map[string]any{"code": int(code), "message": text, "details": []any{}})
}

// statusOf returns the status by HTTP of a code.
func statusOf(code connect.Code) int {
	switch code {
	case connect.CodeInvalidArgument:
		return http.StatusBadRequest
	case connect.CodeUnauthenticated:
		return http.StatusUnauthorized
	case connect.CodePermissionDenied:
		return http.StatusForbidden
	case connect.CodeNotFound:
		return http.StatusNotFound
	case connect.CodeResourceExhausted:
		return http.StatusRequestEntityTooLarge
	case connect.CodeUnavailable:
		return http.StatusServiceUnavailable
	case connect.CodeDeadlineExceeded:
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}
