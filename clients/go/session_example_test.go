// SPDX-License-Identifier: Apache-2.0

package cryptobroker_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
)

// beginSession serves POST /session/init.
func beginSession(w http.ResponseWriter, r *http.Request) {
	var body struct {
		KeyAgreement    string `json:"keyAgreement"`
		ClientPublicKey string `json:"clientPublicKey"`
		TTLSec          uint32 `json:"ttlSec"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&body); err != nil {
		refuseSession(w)
		return
	}
	begun, err := client.InitSession(r.Context(), cryptobroker.InitSessionRequest{
		Profile: "Shop", KeyAgreement: body.KeyAgreement, ClientPublicKey: body.ClientPublicKey, TTLSeconds: body.TTLSec,
		Nonce: r.Header.Get("X-Nonce"), Timestamp: r.Header.Get("X-Timestamp"), ClientID: r.Header.Get("X-ClientId"),
	})
	if err != nil {
		refuseSession(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{ // a client that has gone needs no answer
		"sessionId": begun.SessionID, "serverPublicKey": begun.ServerPublicKey, "encAlg": begun.EncAlg, "expiresInSec": int(begun.ExpiresIn.Seconds()),
	})
}

// encrypted serves encrypted requests. serve gets the path in its normal form and what was encrypted,
// and returns what is encrypted for the client.
func encrypted(serve func(path string, plaintext []byte) []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || r.URL.RawQuery != "" { // the protocol does not authenticate a query
			refuseSession(w)
			return
		}
		opened, err := client.OpenRequest(r.Context(), cryptobroker.OpenRequestRequest{
			Profile: "Shop", Method: r.Method, Path: r.URL.EscapedPath(), Body: body,
			Kid: r.Header.Get("X-Kid"), EncAlg: r.Header.Get("X-Enc-Alg"), IV: r.Header.Get("X-IV"), Tag: r.Header.Get("X-Tag"), AAD: r.Header.Get("X-AAD"),
			Nonce: r.Header.Get("X-Nonce"), Timestamp: r.Header.Get("X-Timestamp"),
			IdempotencyKey: r.Header.Get("X-Idempotency-Key"), ClientID: r.Header.Get("X-ClientId"),
		})
		if err != nil {
			refuseSession(w)
			return
		}
		reply, err := client.SealReply(r.Context(), cryptobroker.SealReplyRequest{
			Profile: "Shop", SessionID: opened.SessionID, ClientPath: opened.ClientPath, Plaintext: serve(opened.Path, opened.Plaintext),
		})
		if err != nil {
			refuseSession(w)
			return
		}
		for name, value := range map[string]string{
			"X-Kid": reply.Kid, "X-Enc-Alg": reply.EncAlg, "X-IV": reply.IV, "X-Tag": reply.Tag, "X-AAD": reply.AAD, "X-Nonce": reply.Nonce,
			"X-Timestamp": reply.Timestamp, "X-Idempotency-Key": reply.IdempotencyKey, "X-ClientId": reply.ClientID,
		} {
			if value != "" {
				w.Header().Set(name, value)
			}
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(reply.Body) // a client that has gone needs no answer
	}
}

// refuseSession makes the client begin another session.
func refuseSession(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = io.WriteString(w, `{"error":"SESSION_EXPIRED"}`)
}

// shop is an application whose clients encrypt their requests.
func shop() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /session/init", beginSession)
	mux.Handle("POST /transaction/purchase", encrypted(func(_ string, plaintext []byte) []byte {
		return fmt.Appendf(nil, "sold %s", plaintext)
	}))
	return mux
}

// An application serves encrypted requests by HTTP.
func ExampleClient_OpenRequest() {
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: shop(), ReadHeaderTimeout: 10 * time.Second}
	fmt.Println(server.ListenAndServe())
}
