// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

// FuzzManifests looks for a file that stops a command, or that a command changes where it puts no broker. The seeds run with
// every test.
func FuzzManifests(f *testing.F) {
	files, err := filepath.Glob("../../testdata/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("found no manifests: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, seed := range []string{
		"%YAML 1.2\n---\nkind: Pod\n...\n", "--- {kind: List, items: [{kind: List, items: [1]}]}", "{}{}", "a: &a [*a]", "? {a: 1}\n: 2\n", "apiVersion: v1\nkind: Pod\nmetadata: text\n",
		"apiVersion: v1\nkind: Pod\nmetadata: {}\nspec: {containers: [{name: a}], unknown: 1}\n", "apiVersion: v1\nkind: Pod\nmetadata: {}\nmetadata: {}\n",
		"apiVersion: v1\nkind: Pod\nspec: {contaIners: [{name: a}]}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data, err := text(data)
		if err != nil {
			return
		}
		for _, d := range documentsOf("file", data) {
			if d.Object != nil && d.Bad != "" {
				t.Errorf("%s: found an object, and that it is bad: %s", d.Place, d.Bad)
			}
			if d.Set || d.Bad != "" {
				continue
			}
			if diff := cmp.Diff(d.Object, rewritten(t, d, false)); diff != "" {
				t.Errorf("%s: a document without changes is written as another (-read +written):\n%s", d.Place, diff)
			}
			changed := false
			for _, item := range d.Items() {
				changed = injectInto(t, item) || changed
			}
			if diff := cmp.Diff(d.Object, rewritten(t, d, true)); changed && diff != "" {
				t.Errorf("%s: a document with a broker is written as another (-read +written):\n%s", d.Place, diff)
			}
		}
	})
}

// rewritten reads what is written of a document.
func rewritten(t *testing.T, d Document, changed bool) map[string]any {
	t.Helper()
	var out bytes.Buffer
	if err := d.Write(&out, changed); err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	for _, again := range documentsOf(d.Place, out.Bytes()) {
		if again.Bad != "" {
			t.Errorf("%s: what is written of the document is bad: %s", d.Place, again.Bad)
		}
		if again.Object != nil {
			object = again.Object
		}
	}
	return object
}

// injectInto puts a broker into a pod template, and reports whether there was one that can have a broker.
func injectInto(t *testing.T, item Document) bool {
	t.Helper()
	_, _, _ = item.Name(), item.Misplaced(), item.Text("metadata", "labels")
	pod, err := item.Template("shop")
	var refusal *injection.Refusal
	if err == nil && pod != nil {
		_, err = pod.Inject(template.Template{Image: "broker:1", SocketGroup: 60471, StatusPort: 9470})
	}
	if err != nil && !errors.As(err, &refusal) {
		t.Errorf("%s: found the error %v, expected a refusal", item.Place, err)
	}
	return err == nil && pod != nil
}
