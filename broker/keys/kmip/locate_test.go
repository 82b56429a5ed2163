// SPDX-License-Identifier: Apache-2.0

package kmip

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovh/kmip-go"
	"github.com/ovh/kmip-go/payloads"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// aes returns an active AES key. The minute says when it became active.
func aes(id, name string, minute int) *stored {
	return &stored{id, name, kmip.ObjectTypeSymmetricKey, kmip.StateActive, time.Unix(int64(60*minute), 0), bytes.Repeat([]byte(id[:1]), 32)}
}

// ask asks for a key, and checks which version it finds and how many messages that takes.
func ask(t *testing.T, m *memory, s *Session, name keys.Name, before *keys.Key, version string, messages int) *keys.Key {
	t.Helper()
	m.messages = 0
	key, err := new(Provider).findIn(t.Context(), s, name, before)
	if err != nil {
		t.Fatal(err)
	}
	if key.Version() != version || m.messages != messages {
		t.Errorf("found version %s by %d messages, want %s by %d", key.Version(), m.messages, version, messages)
	}
	return key
}

func TestAQuestionForAKeyCostsFewMessages(t *testing.T) {
	for sentence, test := range map[string]struct {
		server memory
		first  int // messages for the first key
		next   int // for another key
		again  int // for a key that was found before
		three  int // for a key with three versions
		others int // how often the server sends the bytes of a key that nobody has asked for
	}{
		"a server that means the object that it has just located": {memory{placeholder: "found"}, 1, 1, 1, 3, 0},
		"a server that means another object":                      {memory{placeholder: "z"}, 2, 2, 1, 3, 1},
		"a server that means no object":                           {memory{}, 2, 2, 1, 3, 0},
		"a server that takes one request a message":               {memory{alone: true}, 7, 6, 3, 8, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			m := test.server
			m.objects = []*stored{aes("a", "one", 1), aes("b", "two", 1), aes("z", "other", 1), aes("c", "three", 1), aes("e", "three", 3), aes("d", "three", 2)}
			s := m.session(t)
			ask(t, &m, s, keys.Name{ID: "one"}, nil, "a", test.first)
			two := ask(t, &m, s, keys.Name{ID: "two"}, nil, "b", test.next)
			if got := ask(t, &m, s, keys.Name{ID: "two"}, two, "b", test.again); got != two {
				t.Error("a key that has not changed is another one")
			}
			ask(t, &m, s, keys.Name{ID: "three"}, nil, "e", test.three)
			if sent := len(m.gets) - len(slices.DeleteFunc(m.gets, func(id string) bool { return id == "z" })); sent != test.others {
				t.Errorf("the key z was sent %d times, want %d", sent, test.others)
			}
		})
	}
}

func TestAServerThatHappensToMeanTheRightObjectIsNotBelievedForLong(t *testing.T) {
	m := memory{placeholder: "a", objects: []*stored{aes("a", "one", 1), aes("b", "two", 1)}}
	s := m.session(t)
	ask(t, &m, s, keys.Name{ID: "one"}, nil, "a", 1)
	ask(t, &m, s, keys.Name{ID: "two"}, nil, "b", 2)
	m.gets = nil
	ask(t, &m, s, keys.Name{ID: "one"}, nil, "a", 2) // a single coincidence does not change a known property
	ask(t, &m, s, keys.Name{ID: "two"}, nil, "b", 2)
	if !slices.Equal(m.gets, []string{"a", "b"}) {
		t.Errorf("the keys %v were sent, want those that were asked for", m.gets)
	}
}

func TestAReasonOfANewerVersionMayBeThatThereIsNoKey(t *testing.T) {
	for sentence, reason := range map[string]kmip.ResultReason{
		"item not found": kmip.ResultReasonItemNotFound, "object not found": reasonObjectNotFound, "object destroyed": reasonObjectDestroyed,
	} {
		m := memory{reason: reason}
		if _, err := new(Provider).findIn(t.Context(), m.session(t), keys.Name{ID: "key"}, nil); !errors.Is(err, keys.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", sentence, err)
		}
		if _, err := m.session(t).Get(t.Context(), "key"); !errors.Is(err, keys.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", sentence, err)
		}
	}
}

func TestAnErrorHasTheNumberOfAReasonWithoutAName(t *testing.T) {
	m := memory{reason: 0x43}
	if _, err := m.session(t).Get(t.Context(), "key"); !errors.Is(err, keys.ErrUnusable) || !strings.Contains(err.Error(), ": 0x43: ") {
		t.Errorf("got %v, want ErrUnusable with the number 0x43", err)
	}
}

func TestAWrappedKeyIsAskedForInItsOwnFormat(t *testing.T) {
	m := memory{objects: []*stored{aes("a", "key", 1)}}
	if wrapped, err := m.session(t).GetWrapped(t.Context(), "a", "w"); err != nil || len(wrapped) != 32 {
		t.Errorf("got %d bytes, %v", len(wrapped), err)
	}
}

func TestAKeyThatMayNotBeReadSaysNothingOfTheServer(t *testing.T) {
	m := memory{placeholder: "found", objects: []*stored{aes("a", "one", 1), aes("b", "two", 1)}, hidden: "a"}
	s := m.session(t)
	if _, err := new(Provider).findIn(t.Context(), s, keys.Name{ID: "one"}, nil); err == nil {
		t.Error("a key that may not be read was found")
	}
	ask(t, &m, s, keys.Name{ID: "two"}, nil, "b", 1)
}

func TestAKeyWithManyVersionsCostsAsManyMessagesAsOneWithTwo(t *testing.T) {
	m := memory{placeholder: "found"}
	for n := range maxVersions {
		m.objects = append(m.objects, aes(fmt.Sprintf("v%d", n), "key", n))
	}
	ask(t, &m, m.session(t), keys.Name{ID: "key"}, nil, "v63", 3)
}

func TestTheNewVersionOfAKeyIsFound(t *testing.T) {
	m := memory{placeholder: "found", objects: []*stored{aes("a", "key", 1)}}
	s := m.session(t)
	old := ask(t, &m, s, keys.Name{ID: "key"}, nil, "a", 1)
	m.objects = append(m.objects, aes("b", "key", 2))
	ask(t, &m, s, keys.Name{ID: "key"}, old, "b", 3)
	m.objects = m.objects[1:] // the old version is destroyed
	ask(t, &m, s, keys.Name{ID: "key"}, old, "b", 3)
}

func TestAVersionThatOpensDataCostsOneMessage(t *testing.T) {
	for sentence, test := range map[string]struct {
		server   memory
		messages int
	}{
		"a server that means the object that it has just located": {memory{placeholder: "found"}, 1},
		"a server that means no object":                           {memory{}, 1},
		"a server that takes one request a message":               {memory{alone: true}, 3},
	} {
		t.Run(sentence, func(t *testing.T) {
			m := test.server
			m.objects = []*stored{aes("a", "key", 1), aes("b", "key", 2)}
			s, name := m.session(t), keys.Name{ID: "key", Version: "a", Opens: true}
			key := ask(t, &m, s, name, nil, "a", test.messages)
			m.gets = nil
			if got := ask(t, &m, s, name, key, "a", 1); got != key || len(m.gets) > 0 {
				t.Errorf("a key that is known is another one, or the keys %v were sent once more", m.gets)
			}
		})
	}
}

// The name of a version comes with data that a caller sends.
func TestTheBytesOfAnotherKeyAreNotUsedAsThoseOfAVersion(t *testing.T) {
	for sentence, other := range map[string]*stored{
		"a symmetric key": aes("b", "secret", 1),
		"a private key":   {id: "b", name: "secret", kind: kmip.ObjectTypePrivateKey, state: kmip.StateActive, material: []byte("private")},
		// The reply names another object, and contains a symmetric key.
		"an object that the library does not decode": {id: "b", name: "secret", kind: kmip.ObjectTypeSecretData, state: kmip.StateActive, material: []byte("data")},
		"an object that is too large":                {id: "b", name: "secret", kind: kmip.ObjectTypePrivateKey, state: kmip.StateActive, material: make([]byte, maxMessage)},
	} {
		m := memory{placeholder: "found", objects: []*stored{aes("a", "key", 1), other}}
		s := m.session(t)
		if _, err := new(Provider).findIn(t.Context(), s, keys.Name{ID: "key", Version: "b", Opens: true}, nil); !errors.Is(err, keys.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", sentence, err)
		}
		if large := len(other.material) > 100; s.Broken() != large {
			t.Errorf("%s: the connection is broken: %t, want %t", sentence, s.Broken(), large)
		}
	}
}

// Otherwise one caller could make a server seem unavailable to all callers.
func TestAnotherTextOfAnIdentifierIsNoVersion(t *testing.T) {
	for _, opens := range []bool{false, true} {
		m := memory{placeholder: "found", folds: true, objects: []*stored{aes("a", "key", 1)}}
		if _, err := new(Provider).findIn(t.Context(), m.session(t), keys.Name{ID: "key", Version: "A", Opens: opens}, nil); !errors.Is(err, keys.ErrNotFound) {
			t.Errorf("opens: %t: got %v, want ErrNotFound", opens, err)
		}
	}
}

func TestTheBytesOfAVersionAreAskedForOnceItIsKnownToBeOneOfTheKey(t *testing.T) {
	for sentence, test := range map[string]struct {
		opens, alone bool
	}{
		"no data is to be opened":                   {},
		"the server takes one request in a message": {opens: true, alone: true},
	} {
		m := memory{placeholder: "found", alone: test.alone, objects: []*stored{aes("a", "key", 1), aes("b", "secret", 1)}}
		s := m.session(t)
		if _, err := new(Provider).findIn(t.Context(), s, keys.Name{ID: "key", Version: "b", Opens: test.opens}, nil); !errors.Is(err, keys.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", sentence, err)
		}
		if slices.Contains(m.gets, "b") {
			t.Errorf("%s: the server was asked for the bytes of another key", sentence)
		}
	}
}

func TestBytesThatAreNotUsedAreCleared(t *testing.T) {
	secret := func() (*kmip.KeyBlock, []byte) {
		bytes := []byte("secret")
		return &kmip.KeyBlock{KeyFormatType: kmip.KeyFormatTypeRaw, KeyValue: &kmip.KeyValue{Plain: &kmip.PlainKeyValue{KeyMaterial: kmip.KeyMaterial{Bytes: &bytes}}}}, bytes
	}
	private, ofPrivate := secret()
	data, ofData := secret()
	split, ofSplit := secret()
	pgp, ofPGP := secret()
	opaque := []byte("secret")
	for _, test := range []struct {
		object kmip.Object
		bytes  []byte
	}{
		{&kmip.PrivateKey{KeyBlock: *private}, ofPrivate}, {&kmip.SecretData{KeyBlock: *data}, ofData}, {&kmip.SplitKey{KeyBlock: *split}, ofSplit},
		{&kmip.PGPKey{KeyBlock: *pgp}, ofPGP}, {&kmip.OpaqueObject{OpaqueDataValue: opaque}, opaque},
	} {
		item := &kmip.ResponseBatchItem{ResponsePayload: &payloads.GetResponsePayload{UniqueIdentifier: "a", Object: test.object}}
		if _, err := new(Session).materialOf("a", item); err == nil || !bytes.Equal(test.bytes, make([]byte, 6)) {
			t.Errorf("%T: found %q and the error %v, want zeros and an error", test.object, test.bytes, err)
		}
	}
}

func TestSymmetricKeysWithANameHideOtherObjectsWithIt(t *testing.T) {
	private := &stored{id: "p", name: "key", kind: kmip.ObjectTypePrivateKey, state: kmip.StateActive, since: time.Unix(600, 0)}
	m := memory{placeholder: "found", objects: []*stored{aes("a", "key", 1), private}}
	s := m.session(t)
	ask(t, &m, s, keys.Name{ID: "key"}, nil, "a", 1)
	if slices.Contains(m.gets, "p") {
		t.Error("the server was asked for the bytes of a private key")
	}
}

func TestAKeyIsFoundByItsUniqueIdentifier(t *testing.T) {
	m := memory{placeholder: "found", objects: []*stored{aes("a", "key", 1)}}
	ask(t, &m, m.session(t), keys.Name{ID: "a"}, nil, "a", 3)
}
