// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/crypto-broker/crypto-broker-operator/test/conformance/cavs"
	"github.com/crypto-broker/crypto-broker-operator/test/conformance/wire"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// callers is the number of vectors that are sent at the same time.
const callers = 16

// plan collects vectors, and the profiles they need, before a broker runs.
type plan struct {
	quick    bool
	profiles *profileSet
	vectors  []vector
	sources  []source
	strides  map[row]int

	leftOut map[row]map[string]int
}

// source is a source of vectors.
type source struct{ name, version, about string }

func newPlan(quick bool) *plan {
	return &plan{quick: quick, profiles: newProfileSet(), strides: map[row]int{}, leftOut: map[row]map[string]int{}}
}

func (p *plan) add(r row, name string, run func(context.Context, *wire.Client) verdict) {
	p.vectors = append(p.vectors, vector{r, name, run})
}

// addSome adds all vectors, or in a quick run one of every few.
func (p *plan) addSome(every int, r row, name string, run func(context.Context, *wire.Client) verdict) {
	n := p.strides[r]
	p.strides[r]++
	if !p.quick || n%every == 0 {
		p.add(r, name, run)
	}
}

// leave counts a vector that cannot be sent, because the protocol has no field for its
// parameters.
func (p *plan) leave(r row, reason string) {
	if p.leftOut[r] == nil {
		p.leftOut[r] = map[string]int{}
	}
	p.leftOut[r][reason]++
}

func (p *plan) addVectors(ctx context.Context, o options) (err error) {
	nist, err := cavs.Open(ctx, o.cache)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, nist.Close()) }()
	for _, add := range []func() error{
		func() error { return p.addHashes(nist) },
		func() error { return p.addCiphers(nist) },
		func() error { return p.addEd25519Signing(nist) },
		func() error { return p.addSignatures(nist) },
		p.addWycheproof,
		p.addMLDSAOfOthers,
		p.addHPKE,
		p.addStreams,
		p.addStreamCalls,
		func() error { return p.addCertificates(o.root) },
	} {
		if err := add(); err != nil {
			return err
		}
	}
	p.sources = append(p.sources, cavsSource(), wycheproofSource(), circlSource(), tinkSource(), zlintSource())
	return nil
}

// run sends all vectors and counts the answers.
func (p *plan) run(ctx context.Context, c *wire.Client) (*results, error) {
	r := newResults(p)
	runner.Progress("sending %d vectors", len(p.vectors))
	group, ctx := errgroup.WithContext(ctx)
	next := make(chan vector)
	group.Go(func() error {
		defer close(next)
		for i, v := range p.vectors {
			select {
			case next <- v:
			case <-ctx.Done():
				return ctx.Err()
			}
			if n := len(p.vectors) / 10; n > 0 && i > 0 && i%n == 0 {
				runner.Progress("%d of %d", i, len(p.vectors))
			}
		}
		return nil
	})
	var mu sync.Mutex
	for range callers {
		group.Go(func() error {
			for v := range next {
				verdict := v.run(ctx, c)
				if err := ctx.Err(); err != nil {
					return err
				}
				mu.Lock()
				r.count(v, verdict)
				mu.Unlock()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("send the vectors: %w", err)
	}
	return r, nil
}
