// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/rollouts"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

// request is an action that a page requests on a rollout.
type request struct {
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Action    rollouts.Action `json:"action"`
	// Attempt and Step are the values that the page has shown.
	Attempt string `json:"attempt"`
	Step    int32  `json:"step"`
}

// reply is the answer to a page, a sentence.
type reply struct {
	Says string `json:"says"`
}

// rollouts serves requests for actions on rollouts. A request needs the origin of the page, and a
// content type that no HTML form can send. The API server decides whether the user has the right.
func (s *Server) rollouts(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Origin") != "http://"+r.Host {
		answer(w, http.StatusForbidden, "This request does not say that it comes from the page.")
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		answer(w, http.StatusUnsupportedMediaType, "This request is not JSON.")
		return
	}
	var asked request
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil {
		answer(w, http.StatusBadRequest, "This request can't be read: "+err.Error())
		return
	}
	source := downgrade.Source{Kind: asked.Kind, Namespace: asked.Namespace, Name: asked.Name}
	named := source.Kind == downgrade.KindNamespaced && isName(source.Namespace) || source.Kind == downgrade.KindCluster && source.Namespace == ""
	if !named || !isName(source.Name) {
		answer(w, http.StatusBadRequest, "This request names no profile.")
		return
	}
	then, err := s.ask(r.Context(), source, asked.Action, rollouts.Seen{Attempt: asked.Attempt, Step: asked.Step})
	if err != nil {
		answer(w, http.StatusConflict, "Nothing was done: "+apierror.OneLine(apierror.Plain(err)))
		return
	}
	answer(w, http.StatusOK, fmt.Sprintf("The rollout of %s %s.", source, then))
}

// answer sends a sentence to a page.
func answer(w http.ResponseWriter, code int, says string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(reply{says}) // a closed page needs no answer
}

// isName reports whether the API server accepts a name, which becomes a part of a path there.
func isName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }
