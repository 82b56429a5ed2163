// SPDX-License-Identifier: Apache-2.0

package awskms

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// kinds maps error codes of the service whose status is not specific enough.
var kinds = map[string]error{
	"NotFoundException":             keys.ErrNotFound,
	"InvalidCiphertextException":    keys.ErrInvalidCiphertext,
	"IncorrectKeyException":         keys.ErrInvalidCiphertext,
	"AccessDeniedException":         keys.ErrDenied,
	"ExpiredTokenException":         keys.ErrDenied,
	"IncompleteSignature":           keys.ErrDenied,
	"InvalidSignatureException":     keys.ErrDenied,
	"MissingAuthenticationToken":    keys.ErrDenied,
	"UnrecognizedClientException":   keys.ErrDenied,
	"LimitExceededException":        keys.ErrThrottled,
	"ThrottlingException":           keys.ErrThrottled,
	"DependencyTimeoutException":    keys.ErrUnavailable,
	"KeyUnavailableException":       keys.ErrUnavailable,
	"KMSInternalException":          keys.ErrUnavailable,
	"DisabledException":             keys.ErrUnusable,
	"InvalidKeyUsageException":      keys.ErrUnusable,
	"KMSInvalidStateException":      keys.ErrUnusable,
	"UnsupportedOperationException": keys.ErrUnusable,
	"ValidationException":           keys.ErrUnusable,
}

// typed returns the error of a provider for an error of the library. It has the code but not the
// message of the service, because the message may contain data that must not be logged.
func typed(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	var said smithy.APIError
	var response *awshttp.ResponseError
	answered := errors.As(err, &response)
	switch {
	case errors.As(err, &said) && kinds[said.ErrorCode()] != nil:
		return fmt.Errorf("%w: AWS KMS says %s", kinds[said.ErrorCode()], said.ErrorCode())
	case said != nil && answered && response.HTTPStatusCode() < http.StatusInternalServerError:
		return fmt.Errorf("%w: AWS KMS says %s", keys.ErrUnusable, said.ErrorCode())
	case said != nil:
		return fmt.Errorf("%w: AWS KMS says %s", keys.ErrUnavailable, said.ErrorCode())
	}
	return fmt.Errorf("%w: AWS KMS: %w", keys.ErrUnavailable, err)
}
