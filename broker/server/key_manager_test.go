// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// keyManager is a key manager that has every AES key of 128 bits.
type keyManager struct{ t *testing.T }

func (m keyManager) Key(_ context.Context, name keys.Name) (*keys.Key, error) {
	key, err := keys.NewAES(name.ID, []byte(strings.Repeat("m", 16)))
	if err != nil {
		m.t.Error(err)
		return nil, keys.ErrUnusable
	}
	return key.WithVersion("7"), nil
}

func TestAReleasedProfileTakesKeysFromTheKeyManagerOfItsFile(t *testing.T) {
	const profiles = `FormatVersion: 1
KMS: {Client: openbao, Config: common.yaml}
Profiles:
- {Name: Common, API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128}}}
- {Name: Kept, KMS: {Client: openbao, Config: own.yaml, Cache: true}, API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128}}}
- {Name: Listed, API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, KeyIds: [{Id: apps/a}]}}}
- {Name: Wrong, KMS: {Client: openbao, Config: wrong.yaml}, API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128}}}
- {Name: Large, API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256}}}
`
	asked := make(chan string, 1)
	find := func(file string, cached bool) (keys.Provider, error) {
		asked <- fmt.Sprintf("%s %t", file, cached)
		if file == "wrong.yaml" {
			return nil, fmt.Errorf("%w: the file has no mount", keys.ErrUnusable)
		}
		return keyManager{t}, nil
	}
	conn := connect(t, startWith(t, profiles, nil, server.WithKeyManagers(find)).socket(""))
	nonce := strings.Repeat("n", 12)
	for sentence, test := range map[string]struct {
		request message
		asked   string
		code    codes.Code
		refused string // empty for a call that is served
	}{
		"any id":                   {encryption("Common", byID("a"), nonce, "plain"), "common.yaml false", 0, ""},
		"the manager of a profile": {encryption("Kept", byID("a"), nonce, "plain"), "own.yaml true", 0, ""},
		"an id that is listed":     {encryption("Listed", byID("apps/a"), nonce, "plain"), "common.yaml false", 0, ""},
		"a key of the request":     {encryption("Common", raw(strings.Repeat("m", 16)), nonce, "plain"), "", 0, ""},
		"an id that is not listed": {encryption("Listed", byID("b"), nonce, ""), "", codes.PermissionDenied, `EncryptData with profile "Listed": the profile does not list the key "b" in KeyIds`},
		"a file that is wrong":     {encryption("Wrong", byID("a"), nonce, ""), "wrong.yaml false", codes.FailedPrecondition, `EncryptData with profile "Wrong": the key "a" cannot be used; the broker's log says why`},
		"a key of another size":    {encryption("Large", byID("a"), nonce, ""), "common.yaml false", codes.InvalidArgument, `EncryptData with profile "Large": keySource is a key of 128 bits, expected one of 256 bits`},
	} {
		t.Run(sentence, func(t *testing.T) {
			if test.refused != "" {
				refuses(t, conn, methodEncrypt, test.request, test.code, test.refused)
			} else {
				reply := ask(t, conn, methodEncrypt, test.request)
				if id := parse(t, []byte(reply[replyCipherMetadata]))[sealedKeyID]; strings.Contains(id, "#") {
					t.Errorf("the reply names the key %q, expected no version, which DecryptData might not understand", id)
				}
			}
			var got string
			select {
			case got = <-asked:
			default:
			}
			if got != test.asked {
				t.Errorf("asked for the manager %q, want %q", got, test.asked)
			}
		})
	}
}
