// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
)

// remoteOutput is an output that takes lines and does not always acknowledge them.
type remoteOutput struct {
	memory
	mu sync.Mutex
	// unacknowledged is the number of further writes that are not acknowledged. stores reports whether the output stores their lines nevertheless.
	unacknowledged int
	stores         bool
	tries          chan struct{}
}

var errNoAcknowledgement = errors.New("no acknowledgement")

func (f *remoteOutput) Write(lines []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case f.tries <- struct{}{}:
	default:
	}
	if f.unacknowledged == 0 {
		return f.memory.Write(lines)
	}
	if f.unacknowledged--; f.stores {
		if err := f.memory.Write(lines); err != nil {
			return err
		}
	}
	return errNoAcknowledgement
}

func (f *remoteOutput) set(unacknowledged int, stores bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unacknowledged, f.stores = unacknowledged, stores
}

func newResending(t *testing.T, output audit.Output) *audit.Log {
	t.Helper()
	log, err := audit.New(audit.Options{Output: output, Signer: key(1), Resend: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	return log
}

// collected checks lines as lines of a collector.
func collected(text ...string) (audit.Report, error) {
	var c audit.Collected
	v := audit.NewVerifier(key(1).Public())
	for _, file := range text {
		if err := c.Read("collected", strings.NewReader(file)); err != nil {
			return v.Report(), err
		}
	}
	err := c.Verify(v)
	return v.Report(), err
}

func TestLinesThatWereNotAcknowledgedAreSentAgainAsTheyAre(t *testing.T) {
	for name, takes := range map[string]bool{"and are there": true, "and are not there": false} {
		t.Run(name, func(t *testing.T) {
			var f remoteOutput
			log := newResending(t, &f)
			write(t, log, 0, 2)
			f.set(2, takes)
			write(t, log, 2, 3)
			log.Close()
			r, err := collected(f.text.String())
			if err != nil {
				t.Fatal(err)
			}
			if _, lost := log.Stats(); r.Records != 3 || r.Lost != 0 || lost != 0 || r.Checkpoints != 1 {
				t.Errorf("the report is %+v and %d are lost, expected 3 records and none lost", r, lost)
			}
			if noted := strings.Contains(strings.Join(r.Notes, " "), "copies of other lines"); noted != takes {
				t.Errorf("the notes are %q, expected copies: %t", r.Notes, takes)
			}
		})
	}
}

func TestARequiredRecordIsNotWrittenBeforeItIsAcknowledged(t *testing.T) {
	f := remoteOutput{unacknowledged: 1 << 30, stores: true, tries: make(chan struct{})}
	log := newResending(t, &f)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() { failed <- log.Write(ctx, record(0)) }()
	<-f.tries
	<-f.tries
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, expected that the call did not wait any longer", err)
	}
	if records, _ := log.Stats(); records != 0 {
		t.Errorf("%d records count as written, expected none", records)
	}
}

func TestALogThatEndsWithoutAcknowledgementTriesOnceMoreAndLosesWhatIsLeft(t *testing.T) {
	f := remoteOutput{unacknowledged: 1 << 30, stores: true, tries: make(chan struct{}, 1)}
	log := newResending(t, &f)
	log.Add(record(0))
	<-f.tries
	log.Add(record(1))
	log.Close()
	if records, lost := log.Stats(); records != 0 || lost != 2 {
		t.Errorf("%d records are written and %d lost, expected 0 and 2", records, lost)
	}
	r, err := collected(f.text.String())
	if err != nil {
		t.Fatalf("what the collector has is damaged: %v", err)
	}
	if r.Records != 1 {
		t.Errorf("the collector has %d records, expected the one that it has not acknowledged", r.Records)
	}
}
