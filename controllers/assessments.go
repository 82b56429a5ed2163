// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// keptAssessments is how many assessments are remembered before all are dropped.
const keptAssessments = 8192

// assessments remembers what profiles are worth: a status is made often, and a
// profile changes seldom. It is safe for concurrent use.
type assessments struct {
	mu   sync.Mutex
	kept map[types.UID]assessed
}

type assessed struct {
	generation int64
	worth      render.Assessment
}

func newAssessments() *assessments { return &assessments{kept: map[types.UID]assessed{}} }

// of is render.Assess of an object that the API server has. The result is shared
// and must not be changed.
func (a *assessments) of(object client.Object, spec *v1alpha1.ProfileSpec) render.Assessment {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.kept[object.GetUID()]; ok && known.generation == object.GetGeneration() {
		return known.worth
	}
	if len(a.kept) >= keptAssessments {
		clear(a.kept)
	}
	worth := render.Assess(object.GetName(), spec)
	a.kept[object.GetUID()] = assessed{object.GetGeneration(), worth}
	return worth
}
