// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
)

// sessionRequest has the fields of the requests of sessions that other requests do not have.
type sessionRequest struct {
	KeyAgreement    string `json:"keyAgreement"`
	ClientPublicKey string `json:"clientPublicKey"`
	TTLSec          uint32 `json:"ttlSec"`
	Nonce           string `json:"nonce"`
	Timestamp       string `json:"timestamp"`
	ClientID        string `json:"clientId"`
	Method          string `json:"method"`
	Path            string `json:"path"`
	Kid             string `json:"kid"`
	EncAlg          string `json:"encAlg"`
	IV              string `json:"iv"`
	Tag             string `json:"tag"`
	AAD             string `json:"aad"`
	IdempotencyKey  string `json:"idempotencyKey"`
	Sequence        string `json:"sequence"`
	Body            []byte `json:"body"`
	SessionID       string `json:"sessionId"`
	ClientPath      string `json:"clientPath"`
}

func (r request) encrypted() cryptobroker.OpenRequestRequest {
	return cryptobroker.OpenRequestRequest{
		Profile: r.Profile, Method: r.Method, Path: r.Path, Kid: r.Kid, EncAlg: r.EncAlg, IV: r.IV, Tag: r.Tag, AAD: r.AAD,
		Nonce: r.Nonce, Timestamp: r.Timestamp, IdempotencyKey: r.IdempotencyKey, ClientID: r.ClientID, Sequence: r.Sequence, Body: r.Body,
	}
}

func opened(result cryptobroker.OpenRequestResult) reply {
	return reply{
		"plaintext": result.Plaintext, "sessionId": result.SessionID, "path": result.Path, "clientPath": result.ClientPath,
		"clientId": result.ClientID, "sequence": result.Sequence,
	}.with(result.Algorithm, result.Deprecation)
}

func init() {
	maps.Copy(operations, map[string]func(context.Context, *cryptobroker.Client, request) (map[string]any, error){
		"InitSession": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
			result, err := c.InitSession(ctx, cryptobroker.InitSessionRequest{
				Profile: r.Profile, KeyAgreement: r.KeyAgreement, ClientPublicKey: r.ClientPublicKey, TTLSeconds: r.TTLSec,
				Nonce: r.Nonce, Timestamp: r.Timestamp, ClientID: r.ClientID,
			})
			return reply{
				"sessionId": result.SessionID, "serverPublicKey": result.ServerPublicKey, "encAlg": result.EncAlg,
				"expiresInSec": result.ExpiresIn.Seconds(), "signature": result.Signature, "signatureAlgorithm": result.SignatureAlgorithm,
			}.with(result.Algorithm, result.Deprecation), err
		},
		"OpenRequest": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
			result, err := c.OpenRequest(ctx, r.encrypted())
			return opened(result), err
		},
		"RekeySession": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
			result, err := c.RekeySession(ctx, r.encrypted())
			return opened(result), err
		},
		"SealReply": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
			result, err := c.SealReply(ctx, cryptobroker.SealReplyRequest{
				Profile: r.Profile, SessionID: r.SessionID, ClientPath: r.ClientPath, Sequence: r.Sequence, Plaintext: r.Plaintext,
			})
			return reply{
				"kid": result.Kid, "encAlg": result.EncAlg, "iv": result.IV, "tag": result.Tag, "aad": result.AAD, "nonce": result.Nonce,
				"timestamp": result.Timestamp, "idempotencyKey": result.IdempotencyKey, "clientId": result.ClientID,
				"sequence": result.Sequence, "body": result.Body,
			}.with(result.Algorithm, result.Deprecation), err
		},
		"CloseSession": func(ctx context.Context, c *cryptobroker.Client, r request) (map[string]any, error) {
			return reply{}, c.CloseSession(ctx, r.Profile, r.SessionID)
		},
	})
}
