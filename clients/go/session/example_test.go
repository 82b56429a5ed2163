// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"crypto"
	"fmt"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/clients/go/session"
)

// exchange sends a request to the application, and returns the reply. A program does it by HTTP.
func exchange(*session.Request) []byte { return nil }

// begin posts a request to the application, and returns its answer.
func begin(session.InitRequest) session.InitReply { return session.InitReply{} }

func Example() {
	var trusted crypto.PublicKey // such as PublicKey of a certificate that comes with the program
	handshake, err := session.Begin(session.Config{
		Profile: "Shop", Agreement: session.HPKEP256, PublicKey: trusted, SignatureAlgorithm: "ecdsa-with-sha-256", Lifetime: 30 * time.Minute,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := handshake.Finish(begin(handshake.Request()))
	if err != nil {
		fmt.Println(err) // session.ErrNotAuthentic: there is an attacker in the middle
		return
	}
	defer s.Close()
	request, err := s.Seal("POST", "/transaction/purchase", []byte("a book"))
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := s.Open(request, exchange(request))
	fmt.Println(string(answer), err)
}
