// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"encoding/json"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/controllers/changetrace"
)

// traced makes the span of the admission of each change of a profile. A dry run changes nothing
// and has no span.
func traced(traces *changetrace.Tracer, next admission.Handler) admission.Handler {
	if traces == nil {
		return next
	}
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		began := time.Now()
		response := next.Handle(ctx, request)
		change, changes := changeOf(&request)
		if !changes || request.DryRun != nil && *request.DryRun {
			return response
		}
		decided := changetrace.Admission{Request: request.UID, Result: resultOf(response), Accepted: response.Allowed, Began: began, Ended: time.Now()}
		switch decided.Result {
		case resultRefused:
			decided.Reason = refusalOf(response)
		case resultError:
			decided.Failed = true
		}
		traces.Admitted(change, decided)
		return response
	})
}

// changeOf returns the change of a spec by a request, and false if there is none.
func changeOf(request *admission.Request) (changetrace.Change, bool) {
	var before, after metav1.PartialObjectMetadata
	deleted := request.Operation == admissionv1.Delete
	if request.Operation != admissionv1.Create && json.Unmarshal(request.OldObject.Raw, &before) != nil ||
		!deleted && json.Unmarshal(request.Object.Raw, &after) != nil {
		return changetrace.Change{}, false // the request is refused because of this error
	}
	if deleted {
		return changetrace.Of(request.Kind.Kind, &before, true), before.DeletionTimestamp.IsZero()
	}
	return changetrace.Of(request.Kind.Kind, &after, false), after.Generation != before.Generation
}
