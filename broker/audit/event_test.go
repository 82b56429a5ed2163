// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
)

func TestEventsAreRecordsOfTheChainWhateverTheirTextsAre(t *testing.T) {
	var m memory
	log := newLog(t, &m)
	texts := map[string]string{
		"plain": "orders", "quoted": `","event":"end"}`, "lines": "a\nb\r\n", "letters": "Ä😀",
		"controls": "\x00\x1b", "long": strings.Repeat("\x01", 100_000),
	}
	for name, text := range texts {
		log.AddEvent(audit.NewEvent("admission").Text("user.name", text).Text("reason", name).Text("missing", "").Number("count", 7))
	}
	log.Close()
	report, err := verify(m.text.String())
	if err != nil || report.Records != len(texts) || report.Unsigned != 0 {
		t.Fatalf("the check found %+v and %v, expected %d records that are all signed", report, err, len(texts))
	}
	for line := range strings.Lines(m.text.String()) {
		var found map[string]any
		if err := json.Unmarshal([]byte(line), &found); err != nil {
			t.Fatal(err)
		}
		if found["event"] != "admission" {
			continue
		}
		want := texts[found["reason"].(string)]
		if want = want[:min(len(want), 512)]; found["user.name"] != want {
			t.Errorf("the text %q was written as %q", want, found["user.name"])
		}
		if _, has := found["missing"]; has || found["count"] != 7.0 {
			t.Errorf("found %v, expected no field without a value, and the count 7", found)
		}
	}
}

func TestAnEventThatCannotBeWrittenIsLostAndCounted(t *testing.T) {
	var m memory
	m.set(errors.New("the disk is full"), 0, nil)
	log := newLog(t, &m)
	log.AddEvent(audit.NewEvent("admission"))
	log.Close()
	log.AddEvent(audit.NewEvent("admission"))
	if written, lost := log.Stats(); written != 0 || lost != 2 {
		t.Errorf("%d events were written and %d lost, expected 0 and 2", written, lost)
	}
}

func TestALogThatIsOffTakesEvents(*testing.T) {
	var off *audit.Log
	off.AddEvent(audit.NewEvent("admission"))
}
