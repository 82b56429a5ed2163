// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto"
	"crypto/rsa"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	gatewayv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/gateway/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// Sizes of requests, in bytes. Larger data is encrypted with data keys.
const (
	// MaxInputSize is the largest input of a request: what is signed, or what is encrypted
	// together with its additional data.
	MaxInputSize = 64 << 10
	// MaxMessageSize is the largest message of the protocol: an input together with the other fields.
	MaxMessageSize = MaxInputSize + 16<<10
	// MaxTokenSize is the largest token of a pod.
	MaxTokenSize = 16 << 10
)

// MaxCallsOfConnection is the maximum number of calls that a connection may have at one time.
// Further ones wait at the client.
const MaxCallsOfConnection = 64

// Header and scheme of the token.
const (
	TokenHeader = "authorization"
	TokenScheme = "Bearer "
)

// codeOf has the code of each error of package keys.
var codeOf = []struct {
	err  error
	code codes.Code
}{
	{keys.ErrNotFound, codes.NotFound},
	{keys.ErrDenied, codes.PermissionDenied},
	{keys.ErrUnusable, codes.FailedPrecondition},
	{keys.ErrInvalidCiphertext, codes.InvalidArgument},
	{keys.ErrThrottled, codes.ResourceExhausted},
	{keys.ErrUnavailable, codes.Aborted},
}

// Status returns the status with which the gateway reports an error of a key or of its provider. It has only the kind of the error,
// because other details may name objects of other tenants.
func Status(err error) error {
	for _, row := range codeOf {
		if errors.Is(err, row.err) {
			return status.Error(row.code, row.err.Error())
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, "the key manager did not answer before the deadline of the call")
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, "the call was canceled")
	}
	return status.Error(codes.Internal, "failed because of an error inside the key gateway; its log has the details")
}

// errorOf returns the error of package keys that a reply of the gateway stands for.
func errorOf(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	answer := status.Convert(err)
	for _, row := range codeOf {
		if answer.Code() == row.code {
			return fmt.Errorf("%w (key gateway: %s)", row.err, answer.Message())
		}
	}
	kind := keys.ErrUnavailable
	switch answer.Code() {
	case codes.Unauthenticated:
		kind = keys.ErrDenied
	case codes.Unimplemented, codes.OutOfRange:
		kind = keys.ErrUnusable
	}
	return fmt.Errorf("%w (key gateway: %s: %s)", kind, answer.Code(), answer.Message())
}

// hashes are the digests of signatures, by their names in requests.
var hashes = func() map[string]crypto.Hash {
	byName := map[string]crypto.Hash{"": 0}
	for _, hash := range []crypto.Hash{
		crypto.SHA1, crypto.SHA224, crypto.SHA256, crypto.SHA384, crypto.SHA512, crypto.SHA512_224, crypto.SHA512_256,
		crypto.SHA3_224, crypto.SHA3_256, crypto.SHA3_384, crypto.SHA3_512,
	} {
		byName[hash.String()] = hash
	}
	return byName
}()

// setOptions writes the options of a signature into a request.
func setOptions(request *gatewayv1.SignRequest, options crypto.SignerOpts) error {
	if hash := options.HashFunc(); hash != 0 {
		request.Hash = hash.String()
	}
	switch o := options.(type) {
	case crypto.Hash:
		return nil
	case *rsa.PSSOptions:
		request.Pss = true
		if o.SaltLength == rsa.PSSSaltLengthEqualsHash || o.SaltLength == o.Hash.Size() {
			return nil
		}
	}
	return fmt.Errorf("%w: its signatures cannot have options of the kind %T at the key gateway", keys.ErrUnusable, options)
}

// SignerOptions returns the options of the signature in a request. Its errors are for the
// broker that made the request.
func SignerOptions(request *gatewayv1.SignRequest) (crypto.SignerOpts, error) {
	hash, known := hashes[request.GetHash()]
	if !known {
		return nil, fmt.Errorf("%w: the digest %q is not known", keys.ErrUnusable, strings.ToValidUTF8(request.GetHash(), "?"))
	}
	if input, ok := request.GetInput().(*gatewayv1.SignRequest_Digest); ok && (hash == 0 || len(input.Digest) != hash.Size()) {
		return nil, fmt.Errorf("%w: the digest has %d bytes, expected as many as the named digest has", keys.ErrUnusable, len(input.Digest))
	}
	if !request.GetPss() {
		return hash, nil
	}
	if hash == 0 {
		return nil, fmt.Errorf("%w: a signature with PSS needs a digest", keys.ErrUnusable)
	}
	return &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash}, nil
}
