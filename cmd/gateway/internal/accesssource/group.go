// SPDX-License-Identifier: Apache-2.0

package accesssource

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
)

// group has the objects of one kind. It is for one goroutine at a time.
type group[T any] struct {
	kind string
	all  map[string]*object[T] // by name
	// use receives the parts that were made of all objects, in the order of their names.
	use func([]T) error
	// problem is the reason why the last change has no effect, or empty.
	problem string
}

// object is one resource of the group.
type object[T any] struct {
	uid        types.UID
	generation int64
	// used is the generation that is in use, or 0.
	used int64
	made T
	// problem is the problem of the object, or empty.
	problem string
}

func newGroup[T any](kind string, use func([]T) error) *group[T] {
	return &group[T]{kind: kind, all: map[string]*object[T]{}, use: use}
}

// put takes a new object or a changed one. It reports whether anything has changed.
func (g *group[T]) put(found client.Object, convert func() (T, field.ErrorList)) bool {
	next := &object[T]{uid: found.GetUID(), generation: found.GetGeneration()}
	if known := g.all[found.GetName()]; known != nil && known.uid == next.uid {
		if known.generation == next.generation {
			return false
		}
		next.used = known.used
	}
	var problems field.ErrorList
	if next.made, problems = convert(); len(problems) > 0 {
		next.problem = problems.ToAggregate().Error()
	}
	g.all[found.GetName()] = next
	return true
}

func (g *group[T]) remove(name string) { delete(g.all, name) }

// apply puts the objects into use, unless one of them has a problem.
func (g *group[T]) apply() error {
	var made []T
	for _, name := range slices.Sorted(maps.Keys(g.all)) {
		if problem := g.all[name].problem; problem != "" {
			return g.fail(fmt.Errorf("the %s %s is wrong: %s", g.kind, name, problem))
		}
		made = append(made, g.all[name].made)
	}
	if err := g.use(made); err != nil {
		return g.fail(err)
	}
	g.problem = ""
	for _, one := range g.all {
		one.used = one.generation
	}
	return nil
}

func (g *group[T]) fail(err error) error {
	g.problem = err.Error()
	return err
}

// report says which objects are in use.
func (g *group[T]) report() []providerreport.Provider {
	all := make([]providerreport.Provider, 0, len(g.all))
	for _, one := range g.all {
		said := providerreport.Provider{UID: one.uid, Generation: one.generation}
		switch {
		case one.problem != "":
			said.Problem, said.Detail = providerreport.Invalid, one.problem
		case one.used != one.generation:
			said.Problem, said.Detail = providerreport.HeldBack, g.problem
		}
		said.Detail = said.Detail[:min(len(said.Detail), providerreport.MaxDetail)]
		all = append(all, said)
	}
	return all
}
