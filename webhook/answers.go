// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/limits"
)

// brief limits the length of a handler's answers: the message, its causes, the warnings and the
// annotations of the audit log. These texts quote parts of the request.
func brief(next admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		response := next.Handle(ctx, request)
		response.Warnings = limits.Warnings(response.Warnings)
		for key, value := range response.AuditAnnotations {
			response.AuditAnnotations[key] = limits.Cut(value, limits.MaxText)
		}
		result := response.Result
		if result == nil {
			return response
		}
		result.Message = limits.Cut(result.Message, limits.MaxText)
		if details := result.Details; details != nil {
			details.Name = limits.Cut(details.Name, limits.MaxSentence)
			details.Causes = details.Causes[:min(len(details.Causes), limits.MaxProblems)]
			for i := range details.Causes {
				cause := &details.Causes[i]
				cause.Message, cause.Field = limits.Cut(cause.Message, limits.MaxText/limits.MaxProblems), limits.Cut(cause.Field, limits.MaxText/limits.MaxProblems)
			}
		}
		return response
	})
}

// ofObjects calls next for requests whose objects are objects in JSON, and answers
// others with status 400.
func ofObjects(next admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		for _, object := range []runtime.RawExtension{request.Object, request.OldObject} {
			if len(object.Raw) > 0 && !isObject(object.Raw) {
				return admission.Errored(http.StatusBadRequest, errors.New("the object of the request is not in JSON, expected an object"))
			}
		}
		return next.Handle(ctx, request)
	})
}
