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
	"k8s.io/apimachinery/pkg/api/equality"
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

// guarded is an object that the guard checks.
type guarded[T client.Object] struct {
	kind string
	// make returns a new object to decode into.
	make func() T
	// spec returns the spec of a profile. selector returns the namespace selector, or nil for a
	// CryptoProfile.
	spec     func(T) *v1alpha1.ProfileSpec
	selector func(T) any
}

var (
	guardedNamespaced = guarded[*v1alpha1.CryptoProfile]{
		kind:     downgrade.KindNamespaced,
		make:     func() *v1alpha1.CryptoProfile { return &v1alpha1.CryptoProfile{} },
		spec:     func(p *v1alpha1.CryptoProfile) *v1alpha1.ProfileSpec { return &p.Spec },
		selector: func(*v1alpha1.CryptoProfile) any { return nil },
	}
	guardedCluster = guarded[*v1alpha1.ClusterCryptoProfile]{
		kind:     downgrade.KindCluster,
		make:     func() *v1alpha1.ClusterCryptoProfile { return &v1alpha1.ClusterCryptoProfile{} },
		spec:     func(p *v1alpha1.ClusterCryptoProfile) *v1alpha1.ProfileSpec { return &p.Spec.ProfileSpec },
		selector: func(p *v1alpha1.ClusterCryptoProfile) any { return p.Spec.NamespaceSelector },
	}
)

// guardedBy asks the guard about requests that the validator admits.
func guardedBy[T client.Object](g *guard, decoder admission.Decoder, kind guarded[T], next admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		response := next.Handle(ctx, request)
		if !response.Allowed {
			return response
		}
		var before, after T
		has := [2]bool{len(request.OldObject.Raw) > 0, len(request.Object.Raw) > 0}
		if has[0] {
			before = kind.make()
			if err := decoder.DecodeRaw(request.OldObject, before); err != nil {
				return admission.Errored(http.StatusBadRequest, err)
			}
		}
		if has[1] {
			after = kind.make()
			if err := decoder.DecodeRaw(request.Object, after); err != nil {
				return admission.Errored(http.StatusBadRequest, err)
			}
		}
		// An object that is being deleted has no effect any more.
		if has[0] && !before.GetDeletionTimestamp().IsZero() || has[1] && !after.GetDeletionTimestamp().IsZero() {
			return response
		}
		verdict := look(ctx, g, kind, request.UserInfo, before, after, has)
		verdict.Warnings = append(response.Warnings, verdict.Warnings...)
		return verdict
	})
}

// look decides about an object before and after a request. has tells which of the two exist.
func look[T client.Object](ctx context.Context, g *guard, kind guarded[T], author authenticationv1.UserInfo, before, after T, has [2]bool) admission.Response {
	changed := !has[0] || !has[1] ||
		!equality.Semantic.DeepEqual(kind.spec(before), kind.spec(after)) || !equality.Semantic.DeepEqual(kind.selector(before), kind.selector(after))
	annotated := has[1] && allowed(after) != "" && (!has[0] || allowed(after) != allowed(before))
	if !changed && !annotated {
		return admission.Allowed("")
	}
	subject := sourceOf(kind.kind, objectOr(after, has[1]), objectOr(before, has[0]))
	if changed && has[1] {
		if short := g.short(subject, kind.spec(after)); short != "" {
			return admission.Denied(short)
		}
	}

	effect, err := g.effects.of(ctx, objectOr(before, has[0]), objectOr(after, has[1]))
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("find out whether a profile becomes weaker: %w", err))
	}
	if len(effect.withheld) > 0 {
		return marked(admission.Denied(effect.refusal(subject, !has[0])), weakerRefused)
	}
	own := has[1] && slices.ContainsFunc(effect.allowed, func(c placed) bool { return c.Source == subject })
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

func allowed(object client.Object) string {
	return object.GetAnnotations()[v1alpha1.AllowWeakerAnnotation]
}

// sourceOf names the first of these objects that is not nil.
func sourceOf(kind string, objects ...client.Object) downgrade.Source {
	for _, object := range objects {
		if object != nil {
			return downgrade.Source{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}
		}
	}
	return downgrade.Source{Kind: kind}
}

// objectOr avoids an interface that holds a nil pointer.
func objectOr(object client.Object, has bool) client.Object {
	if !has {
		return nil
	}
	return object
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
