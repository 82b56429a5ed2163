// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package benchkeyaccess

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/go-jose/go-jose/v4"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

const procedure = "/kas.AccessService/Rewrap"

// reader is a caller who reads files. It has a key for proofs, and a key to which results are wrapped.
type reader struct {
	from   *issuer.Issuer
	prover issuer.Prover
	public string
	// plain says that the token is bound to no key, and comes without proofs.
	plain bool
	token atomic.Pointer[string]
}

func newReader(b *testing.B, from *issuer.Issuer, plain bool) *reader {
	b.Helper()
	key, err := issuer.NewKey(jose.ES256)
	if err != nil {
		b.Fatal(err)
	}
	recipient, err := issuer.NewKey(jose.RS256)
	if err != nil {
		b.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(recipient.Public())
	if err != nil {
		b.Fatal(err)
	}
	r := &reader{from: from, prover: issuer.Prover{Key: key, Algorithm: jose.ES256}, plain: plain, public: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}
	r.renew()
	return r
}

// renew gets a new token.
func (r *reader) renew() {
	var bound crypto.Signer
	if !r.plain {
		bound = r.prover.Key
	}
	token := r.from.Token(r.from.Claims("reader", bound))
	r.token.Store(&token)
}

// question is a signed request for the data keys of a file, to one service.
type question struct {
	service *service
	signed  string
	objects int
}

// proven is a question with its credentials. With a proof, it can be sent once.
type proven struct {
	*question
	authorization, proof string
}

// prove returns a question that can be sent.
func (r *reader) prove(q *question) proven {
	token := *r.token.Load()
	if r.plain {
		return proven{q, "Bearer " + token, ""}
	}
	return proven{q, "DPoP " + token, r.prover.Proof(http.MethodPost, q.service.url+procedure, token)}
}

// send sends a question, and returns an error unless all data keys are released.
func (p *proven) send(ctx context.Context) error {
	in := connect.NewRequest(&kas.RewrapRequest{SignedRequestToken: p.signed})
	in.Header().Set("Authorization", p.authorization)
	if p.proof != "" {
		in.Header().Set("DPoP", p.proof)
	}
	out, err := connect.NewClient[kas.RewrapRequest, kas.RewrapResponse](client, p.service.url+procedure).CallUnary(ctx, in)
	if err != nil {
		return err
	}
	released := 0
	for _, result := range out.Msg.GetResponses()[0].GetResults() {
		if result.GetStatus() != "permit" {
			return fmt.Errorf("found the result %s: %s", result.GetStatus(), result.GetError())
		}
		released++
	}
	if released != p.objects {
		return fmt.Errorf("found %d data keys, expected %d", released, p.objects)
	}
	return nil
}

// body is the policy of all files: it has no attributes.
var body = base64.StdEncoding.EncodeToString([]byte(`{"body":{}}`))

// share returns an object with a new data key for a service.
func share(b *testing.B, s *service) *kas.KeyAccess {
	b.Helper()
	dataKey := make([]byte, 32)
	_, _ = rand.Read(dataKey) // never fails
	recipient, err := wrapping.NewRecipient(s.key.Public(), false)
	if err != nil {
		b.Fatal(err)
	}
	wrapped, err := recipient.Wrap(dataKey)
	if err != nil {
		b.Fatal(err)
	}
	mac := hmac.New(sha256.New, dataKey)
	mac.Write([]byte(body))
	return &kas.KeyAccess{
		KeyType: "wrapped", Kid: "rsa-1", KasUrl: s.url, WrappedKey: wrapped,
		PolicyBinding: &kas.PolicyBinding{Algorithm: "HS256", Hash: base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}
}

// ask returns a question for some objects.
func (r *reader) ask(b *testing.B, to *service, objects ...*kas.KeyAccess) *question {
	b.Helper()
	wanted := &kas.UnsignedRewrapRequest_WithPolicyRequest{Policy: &kas.UnsignedRewrapRequest_WithPolicy{Id: "policy", Body: body}}
	for i, object := range objects {
		wanted.KeyAccessObjects = append(wanted.KeyAccessObjects, &kas.UnsignedRewrapRequest_WithKeyAccessObject{KeyAccessObjectId: fmt.Sprint(i), KeyAccessObject: object})
	}
	text, err := protojson.Marshal(&kas.UnsignedRewrapRequest{ClientPublicKey: r.public, Requests: []*kas.UnsignedRewrapRequest_WithPolicyRequest{wanted}})
	if err != nil {
		b.Fatal(err)
	}
	return &question{to, issuer.Sign(r.prover.SigningKey(), map[string]any{}, map[string]any{"requestBody": string(text)}), len(objects)}
}

// file is the questions for a file. They are sent one after the other.
type file []*question

// files returns files, each with a data key or a share for each service. apart reports whether the client asks each service on its
// own. Otherwise it asks the first service, which asks the others.
func (r *reader) files(b *testing.B, n int, apart bool, services ...*service) (all []file) {
	b.Helper()
	for range n {
		var questions file
		var objects []*kas.KeyAccess
		for _, s := range services {
			object := share(b, s)
			if apart {
				questions = append(questions, r.ask(b, s, object))
			} else {
				objects = append(objects, object)
			}
		}
		if !apart {
			questions = file{r.ask(b, services[0], objects...)}
		}
		all = append(all, questions)
	}
	return all
}

// sample has the times of some requests.
type sample struct {
	took   []time.Duration // sorted
	wall   time.Duration
	failed int
	reason string // of a failure
}

// measure reads files in random order, each as often as the others, with some requests at one time. Proofs are made before the time
// of a request begins.
func (r *reader) measure(b *testing.B, files []file, requests, atOnce int) *sample {
	b.Helper()
	order := make([]int, requests)
	for i := range order {
		order[i] = i % len(files)
	}
	mathrand.Shuffle(requests, func(i, j int) { order[i], order[j] = order[j], order[i] })
	found := &sample{took: make([]time.Duration, requests)}
	var mu sync.Mutex // guards the failures
	var next atomic.Int64
	var workers sync.WaitGroup
	began := time.Now()
	for range atOnce {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(requests); i = next.Add(1) - 1 {
				var ready []proven
				for _, q := range files[order[i]] {
					ready = append(ready, r.prove(q))
				}
				start := time.Now()
				for _, p := range ready {
					if err := p.send(b.Context()); err != nil {
						mu.Lock()
						found.failed++
						found.reason = err.Error()
						mu.Unlock()
						break
					}
				}
				found.took[i] = time.Since(start)
			}
		})
	}
	workers.Wait()
	found.wall = time.Since(began)
	sortTimes(found)
	return found
}

func sortTimes(s *sample) { slices.Sort(s.took) }

// rate sends requests that are ready, with some at one time.
func (r *reader) rate(b *testing.B, files []file, requests, atOnce int) *sample {
	b.Helper()
	ready := make([]proven, requests)
	for i := range ready {
		ready[i] = r.prove(files[i%len(files)][0])
	}
	found := &sample{}
	var failed, next atomic.Int64
	var workers sync.WaitGroup
	began := time.Now()
	for range atOnce {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(requests); i = next.Add(1) - 1 {
				if ready[i].send(b.Context()) != nil {
					failed.Add(1)
				}
			}
		})
	}
	workers.Wait()
	found.wall, found.failed = time.Since(began), int(failed.Load())
	return found
}

// at returns a percentile in milliseconds.
func (s *sample) at(percent float64) float64 {
	place := min(int(percent/100*float64(len(s.took))), len(s.took)-1)
	return milliseconds(s.took[place])
}

// mean returns the mean in milliseconds.
func (s *sample) mean() float64 {
	sum := time.Duration(0)
	for _, d := range s.took {
		sum += d
	}
	return milliseconds(sum) / float64(len(s.took))
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
