// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// recordsOf returns the records that do writes, without the lines of the log itself.
func recordsOf(t *testing.T, do func(*reconciler)) (records []map[string]any) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	log, err := audit.New(audit.Options{Output: audit.Stream(&text), Signer: key, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	do(&reconciler{audit: log})
	log.Close()
	for line := range strings.Lines(text.String()) {
		var found map[string]any
		if err := json.Unmarshal([]byte(line), &found); err != nil {
			t.Fatal(err)
		}
		if event := found["event"]; event != "start" && event != "end" {
			records = append(records, found)
		}
	}
	return records
}

var audited = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}

func TestAChangeThatIsWithheldHasOneRecordWhileItIsWithheld(t *testing.T) {
	withheld := func(digests ...string) state.Decision {
		var d state.Decision
		for _, digest := range digests {
			d.Withheld = append(d.Withheld, downgrade.Change{
				Source: downgrade.Source{Kind: downgrade.KindNamespaced, Namespace: "shop", Name: "orders"}, Profile: "orders", Digest: digest,
			})
		}
		return d
	}
	one, two, none := withheld("sha256:1"), withheld("sha256:1", "sha256:2"), withheld()
	records := recordsOf(t, func(r *reconciler) {
		r.recordWithheld(audited, nil, one)
		r.recordWithheld(audited, &one, one)
		r.recordWithheld(audited, &one, two)
		r.recordWithheld(audited, &two, none)
		r.recordWithheld(audited, &none, one)
	})
	var digests []any
	for _, record := range records {
		if record["event"] != "downgrade" || record["result"] != "withheld" || record["k8s.namespace.name"] != "shop" || record["object.name"] != "orders" {
			t.Errorf("found the record %v", record)
		}
		digests = append(digests, record["allow_weaker"])
	}
	if want := []any{"sha256:1", "sha256:2", "sha256:1"}; len(digests) != 3 || digests[0] != want[0] || digests[1] != want[1] || digests[2] != want[2] {
		t.Errorf("there are records of %v, expected %v", digests, want)
	}
}

func TestASetThatChangesHasARecordWithItsDigestsBeforeAndAfter(t *testing.T) {
	holding := func(file string) sources {
		return sources{namespace: audited, found: &corev1.ConfigMap{Data: map[string]string{profile.FileName: file}}}
	}
	set := guarded{Result: render.Result{Names: []string{"a", "b"}}}
	first, second := profile.Digest([]byte("first")), profile.Digest([]byte("second"))
	for sentence, test := range map[string]struct {
		from          sources
		data          []byte
		before, after any // of the record, both nil for none
	}{
		"the first set":                     {sources{namespace: audited}, []byte("first"), nil, first},
		"another set":                       {holding("first"), []byte("second"), first, second},
		"the same set with other keys":      {holding("first"), []byte("first"), nil, nil},
		"a set that is taken away":          {holding("first"), nil, first, nil},
		"nothing, where there was nothing":  {sources{namespace: audited, found: &corev1.ConfigMap{}}, nil, nil, nil},
		"an empty set in the place of none": {sources{namespace: audited, found: &corev1.ConfigMap{}}, []byte("first"), nil, first},
	} {
		t.Run(sentence, func(t *testing.T) {
			records := recordsOf(t, func(r *reconciler) { r.recordWritten(test.from, set, 7, test.data) })
			if test.before == nil && test.after == nil {
				if len(records) > 0 {
					t.Errorf("found the records %v, expected none", records)
				}
				return
			}
			if len(records) != 1 || records[0]["profiles.digest.before"] != test.before || records[0]["profiles.digest"] != test.after {
				t.Fatalf("found the records %v, expected one with the digests %v and %v", records, test.before, test.after)
			}
			if _, has := records[0]["profiles.revision"]; has != (test.after != nil) {
				t.Errorf("found the record %v, expected a revision if there is a set", records[0])
			}
		})
	}
}

// The cache may have a ConfigMap for a while after the operator has deleted it.
func TestADeletionHasOneRecordAlsoIfTheCacheIsBehind(t *testing.T) {
	set := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: v1alpha1.ProfilesConfigMap},
		Data:       map[string]string{profile.FileName: "first"},
	}
	server := fake.NewClientBuilder().WithObjects(set).Build()
	records := recordsOf(t, func(r *reconciler) {
		r.namespaces = state.NewStore()
		r.configMaps = &configMaps{cached: server, live: server, namespaces: r.namespaces}
		for range 2 {
			if _, _, err := r.remove(t.Context(), sources{namespace: audited, found: set.DeepCopy()}, guarded{}); err != nil {
				t.Fatal(err)
			}
		}
	})
	if len(records) != 1 || records[0]["profiles.digest.before"] != profile.Digest([]byte("first")) {
		t.Errorf("found the records %v, expected one of the set that was deleted", records)
	}
}
