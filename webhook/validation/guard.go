// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// The guard asks the API server who may make profiles weaker.
//
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// guard refuses requests that would make a profile weaker in some namespace (see package
// downgrade), unless the annotation cryptobroker.io/allow-weaker allows exactly that change and
// the author of the request has the verb weaken on the object. Every write of the annotation
// needs the same verb, because the allowed change may happen later, without a request to the
// guard.
//
// The guard reads profiles from a cache, which may be outdated. The reconciler compares again
// before it writes, and withholds changes that the guard has missed.
type guard struct {
	effects *effects
	// review asks the API server.
	review Reviewer
}

// newGuard makes the guard of all profiles.
func newGuard(reader client.Reader, options Options) *guard {
	return &guard{
		effects: &effects{reader: reader, minimum: options.MinimumStrength, operatorNamespace: options.OperatorNamespace},
		review:  options.Review,
	}
}

// guardedBy asks the guard about requests that the validator admits. none is an empty object of
// their kind.
func guardedBy(g *guard, decoder admission.Decoder, none client.Object, next admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		response := next.Handle(ctx, request)
		if !response.Allowed {
			return response
		}
		var objects [2]client.Object // before and after the request
		for i, raw := range []runtime.RawExtension{request.OldObject, request.Object} {
			if len(raw.Raw) == 0 {
				continue
			}
			objects[i] = none.DeepCopyObject().(client.Object)
			if err := decoder.DecodeRaw(raw, objects[i]); err != nil {
				return admission.Errored(http.StatusBadRequest, err)
			}
		}
		// An object that is being deleted has no effect any more.
		if slices.ContainsFunc(objects[:], func(o client.Object) bool { return o != nil && !o.GetDeletionTimestamp().IsZero() }) {
			return response
		}
		verdict := g.look(ctx, request.UserInfo, objects[0], objects[1])
		verdict.Warnings = append(response.Warnings, verdict.Warnings...)
		return verdict
	})
}

// look decides about an object before and after a request. One of the two may be nil.
func (g *guard) look(ctx context.Context, author authenticationv1.UserInfo, before, after client.Object) admission.Response {
	changed := !sameSpec(before, after)
	annotated := allowed(after) != "" && allowed(after) != allowed(before)
	if !changed && !annotated {
		return admission.Allowed("")
	}
	object := after
	if object == nil {
		object = before
	}
	subject := sourceOf(object)
	if spec, _ := specOf(after); changed && spec != nil {
		if short := g.short(subject, spec); short != "" {
			return admission.Denied(short)
		}
	}

	effect, err := g.effects.of(ctx, before, after)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("find out whether a profile becomes weaker: %w", err))
	}
	if len(effect.withheld) > 0 {
		return marked(admission.Denied(effect.refusal(subject, before == nil)), weakerRefused)
	}
	own := after != nil && slices.ContainsFunc(effect.allowed, func(c placed) bool { return c.Source == subject })
	if annotated || own {
		may, err := g.mayWeaken(ctx, author, subject)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		if may != "" {
			return marked(admission.Denied(may), weakerRefused)
		}
	}
	response := admission.Allowed("")
	response.Warnings = effect.warnings()
	switch {
	case len(effect.allowed) > 0:
		return marked(response, weakerAllowed)
	case len(effect.tolerated) > 0:
		return marked(response, weakerWithheld)
	}
	return response
}

// marked adds the guard's decision on a change to a weaker profile to a response.
func marked(response admission.Response, weaker string) admission.Response {
	response.AuditAnnotations = map[string]string{auditWeaker: weaker}
	return response
}

// allowed returns the annotation that allows changes to weaker profiles. object may be nil.
func allowed(object client.Object) string {
	if object == nil {
		return ""
	}
	return object.GetAnnotations()[v1alpha1.AllowWeakerAnnotation]
}

// sourceOf names an object.
func sourceOf(object client.Object) downgrade.Source {
	kind := downgrade.KindNamespaced
	if _, is := object.(*v1alpha1.ClusterCryptoProfile); is {
		kind = downgrade.KindCluster
	}
	return downgrade.Source{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// short returns a sentence if a profile is below the minimum strength, and otherwise an empty
// text.
func (g *guard) short(source downgrade.Source, spec *v1alpha1.ProfileSpec) string {
	if g.effects.minimum == 0 {
		return ""
	}
	p, err := render.Document(source.Name, spec)
	if err != nil {
		return "" // refused before
	}
	j := downgrade.State{}.Judge([]downgrade.Candidate{{Profile: p, Source: source}}, g.effects.minimum)
	if len(j.Short) == 0 {
		return ""
	}
	var parts []string
	for _, s := range profile.StrengthOf(&p) {
		if s.Operation != "" && s.Bits < g.effects.minimum {
			parts = append(parts, fmt.Sprintf("%s has %d bits by %s", s.Operation, s.Bits, s.Limit))
		}
	}
	return fmt.Sprintf("spec.api: %s %s.", j.Short[0].Sentence(), strings.Join(parts, "; "))
}

// mayWeaken asks the API server whether the author has the verb weaken on the object. It returns
// a sentence about the missing right, or an empty text.
func (g *guard) mayWeaken(ctx context.Context, author authenticationv1.UserInfo, source downgrade.Source) (string, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: author.Username, UID: author.UID, Groups: author.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: source.Resource(),
			Verb: downgrade.Verb, Namespace: source.Namespace, Name: source.Name,
		},
	}}
	for key, value := range author.Extra {
		review.Spec.Extra[key] = authorizationv1.ExtraValue(value)
	}
	answer, err := g.review(ctx, review)
	if err != nil {
		return "", fmt.Errorf("find out whether %q may make %s weaker: %w", author.Username, source, err)
	}
	if answer.Status.Allowed && !answer.Status.Denied {
		return "", nil
	}
	where := ""
	if source.Namespace != "" {
		where = fmt.Sprintf(" in namespace %q", source.Namespace)
	}
	return fmt.Sprintf("metadata.annotations[%s] is for authors with the verb %q on %s %q%s, found %q without it: "+
		"remove the annotation, or bind a ClusterRole with that verb to the author; without that, only cluster-admin has it",
		v1alpha1.AllowWeakerAnnotation, downgrade.Verb, source.Resource(), source.Name, where, author.Username), nil
}
