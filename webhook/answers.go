// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/textlimits"
)

// brief limits the length of a handler's answers: the message, its causes, the warnings and the
// annotations of the audit log. These texts quote parts of the request.
func brief(next admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		response := next.Handle(ctx, request)
		response.Warnings = textlimits.Warnings(response.Warnings)
		for key, value := range response.AuditAnnotations {
			response.AuditAnnotations[key] = textlimits.Cut(value, textlimits.MaxText)
		}
		result := response.Result
		if result == nil {
			return response
		}
		result.Message = textlimits.Cut(result.Message, textlimits.MaxText)
		if details := result.Details; details != nil {
			details.Name = textlimits.Cut(details.Name, textlimits.MaxSentence)
			details.Causes = details.Causes[:min(len(details.Causes), textlimits.MaxProblems)]
			for i := range details.Causes {
				cause := &details.Causes[i]
				cause.Message, cause.Field = textlimits.Cut(cause.Message, textlimits.MaxText/textlimits.MaxProblems), textlimits.Cut(cause.Field, textlimits.MaxText/textlimits.MaxProblems)
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
