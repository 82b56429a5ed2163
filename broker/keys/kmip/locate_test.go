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

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// aes returns an active AES key. The minute says when it became active.
func aes(id, name string, minute int) *stored {
	return &stored{id, name, kmip.ObjectTypeSymmetricKey, kmip.StateActive, time.Unix(int64(60*minute), 0), bytes.Repeat([]byte(id[:1]), 32)}
}

// ask asks for a key and checks which version is found, and by how many messages.
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
		next   int // for another one
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
	ask(t, &m, s, keys.Name{ID: "one"}, nil, "a", 2) // once it is known, one coincidence does not change that
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

func TestTheBytesOfAVersionAreAskedForOnceItIsKnownToBeOneOfTheKey(t *testing.T) {
	m := memory{placeholder: "found", objects: []*stored{aes("a", "key", 1), aes("b", "secret", 1)}}
	s := m.session(t)
	ask(t, &m, s, keys.Name{ID: "key", Version: "a"}, nil, "a", 2)
	m.gets = nil
	if _, err := new(Provider).findIn(t.Context(), s, keys.Name{ID: "key", Version: "b"}, nil); err == nil {
		t.Error("a version of another key was found")
	}
	if slices.Contains(m.gets, "b") {
		t.Error("the server was asked for the bytes of another key")
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
