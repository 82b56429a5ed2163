// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
)

// auditWeaker is the key of the audit annotation with the guard's decision on a change that makes
// a profile weaker. The API server adds the webhook's name before it.
const auditWeaker = "weaker"

// Values of auditWeaker.
const (
	weakerAllowed  = "allowed"
	weakerRefused  = "refused"
	weakerWithheld = "withheld"
)

// audited writes an audit record of each request that changes an object or is refused. A dry run
// changes nothing and has no record.
func audited(log *audit.Log, next admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		response := next.Handle(ctx, request)
		if log == nil || request.DryRun != nil && *request.DryRun {
			return response
		}
		before, after := readObject(request.OldObject.Raw), readObject(request.Object.Raw)
		if response.Allowed && before == after {
			return response // other fields than the spec
		}
		weaker := response.AuditAnnotations[auditWeaker]
		event := audit.NewEvent("admission").
			Text("result", resultOf(response)).Text("operation", strings.ToLower(string(request.Operation))).
			Text("object.kind", request.Kind.Kind).Text("k8s.namespace.name", request.Namespace).Text("object.name", cmp.Or(request.Name, after.name)).
			Text("user.name", request.UserInfo.Username).Text("user.id", request.UserInfo.UID).
			Text("spec.digest.before", before.digest).Text("spec.digest", after.digest).
			Text("weaker", weaker).Text("allow_weaker", after.allowWeaker)
		switch {
		case !response.Allowed:
			event.Text("reason", response.Result.Message)
		case weaker != "":
			event.Text("reason", strings.Join(response.Warnings, " "))
		}
		log.AddEvent(event)
		return response
	})
}

// object has the fields of an object in a record. It is empty for an object that does not exist.
type object struct {
	// name is the name. For a request with generateName, only this object has it.
	name string
	// digest is the SHA-256 of the spec in JSON with sorted names and without spaces.
	digest string
	// allowWeaker is the annotation that allows changes to weaker profiles.
	allowWeaker string
}

func readObject(raw []byte) object {
	var fields struct {
		Metadata struct {
			Name        string            `json:"name"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec any `json:"spec"`
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		return object{} // none, or the request is refused for it
	}
	var spec bytes.Buffer
	encoder := json.NewEncoder(&spec)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(fields.Spec); err != nil {
		return object{}
	}
	sum := sha256.Sum256(bytes.TrimSuffix(spec.Bytes(), []byte("\n")))
	return object{fields.Metadata.Name, "sha256:" + hex.EncodeToString(sum[:]), fields.Metadata.Annotations[v1alpha1.AllowWeakerAnnotation]}
}

// resultOf returns the result of a request.
func resultOf(response admission.Response) string {
	switch code := response.Result.Code; {
	case response.Allowed:
		return resultAccepted
	case code == http.StatusBadRequest || code >= http.StatusInternalServerError:
		return resultError
	default:
		return resultRefused
	}
}
