// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

// admission counts pods that the API server was asked to admit.
type admission struct {
	tries, refused int
	said           string // the last refusal
}

// probes ask the API server twice a second to admit pods, without creating them.
type probes struct {
	withBroker, without admission
	wait                sync.WaitGroup
}

// probe begins to ask, until the context ends. The counts may be read after the wait.
func (t *trial) probe(ctx context.Context) *probes {
	p := &probes{}
	for counts, annotations := range map[*admission]map[string]string{
		&p.withBroker: workload.Inject("true"), &p.without: nil,
	} {
		p.wait.Go(func() {
			for ctx.Err() == nil {
				err := t.AdmitPod(ctx, t.Pod(namespace, annotations, nil))
				if ctx.Err() != nil {
					return
				}
				counts.tries++
				if err != nil {
					counts.refused++
					counts.said = err.Error()
				}
				if pause(ctx, 500*time.Millisecond) != nil {
					return
				}
			}
		})
	}
	return p
}
