// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func tenant(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
}

// recordIn returns the ConfigMaps of a record with this text for each UID.
func recordIn(all map[string]string) (pages []client.Object) {
	byPage := map[string]map[types.UID]Given{}
	for uid, text := range all {
		name := pageOf(types.UID(uid))
		if byPage[name] == nil {
			byPage[name] = map[types.UID]Given{}
		}
		byPage[name][types.UID(uid)] = readGiven(text)
	}
	for name, last := range byPage {
		pages = append(pages, configMapIn("operator", name, lines.write(last)))
	}
	return pages
}

func configMapIn(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

func expectRecord(t *testing.T, cluster client.Client, want map[string]string) {
	t.Helper()
	all := map[string]string{}
	for _, name := range pageNames() {
		found, err := New(cluster, cluster, "operator").get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if found != nil {
			maps.Copy(all, keys.write(lines.read(found.Data)))
		}
	}
	if !maps.Equal(all, want) {
		t.Errorf("found %v, expected %v", all, want)
	}
}

func TestTheRecordOutlastsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fake.NewClientBuilder().WithObjects(tenant("bank"), tenant("shop")).Build()
		first := New(cluster, cluster, "operator")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- first.Run(ctx) }()
		for _, name := range []string{"bank", "shop"} {
			if last, served, err := first.Of(ctx, tenant(name)); served || err != nil {
				t.Errorf("%s was given %q, %t, %v", name, last, served, err)
			}
		}
		first.Note(tenant("bank"), Given{5, "a"})
		<-time.After(2 * recordPause) // in no real time
		expectRecord(t, cluster, map[string]string{"uid-of-bank": "5 a"})
		first.Note(tenant("shop"), Given{7, ""})
		first.Note(tenant("bank"), Given{4, "b"}) // as after the clock was put back
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		expectRecord(t, cluster, map[string]string{"uid-of-bank": "5 a", "uid-of-shop": "7"})

		if err := cluster.Delete(t.Context(), tenant("shop")); err != nil {
			t.Fatal(err)
		}
		second := New(cluster, cluster, "operator")
		if last, served, err := second.Of(t.Context(), tenant("bank")); last != (Given{5, "a"}) || !served || err != nil {
			t.Errorf("found %q, %t, %v", last, served, err)
		}
		if _, served, _ := second.Of(t.Context(), tenant("shop")); served {
			t.Error("a namespace that is gone is in the record")
		}
	})
}

func TestANamespaceThatIsGoneLeavesTheRecordAndTakesNoOtherWithIt(t *testing.T) {
	all := map[string]string{"uid-of-bank": "5 a", "uid-of-shop": "7"}
	for sentence, test := range map[string]struct {
		read bool
		want map[string]string
	}{
		"when the record was read":        {true, map[string]string{"uid-of-bank": "5 a"}},
		"when nobody has read the record": {false, all},
	} {
		t.Run(sentence, func(t *testing.T) {
			cluster := fake.NewClientBuilder().WithObjects(tenant("bank"), tenant("shop")).WithObjects(recordIn(all)...).Build()
			r := New(cluster, cluster, "operator")
			if test.read {
				if _, _, err := r.Of(t.Context(), tenant("bank")); err != nil {
					t.Fatal(err)
				}
			}
			r.Drop("uid-of-shop")
			select {
			case <-r.changed:
				r.write(t.Context())
			default:
			}
			expectRecord(t, cluster, test.want)
		})
	}
}

func TestTheRecordIsNeverPutBack(t *testing.T) {
	for sentence, test := range map[string]struct {
		meanwhile func(t *testing.T, cluster client.Client)
		version   string
		want      map[string]string
		fails     bool
	}{
		"by what this process knows less of than another": {meanwhile: func(t *testing.T, cluster client.Client) {
			found := configMapIn("operator", pageOf("uid-of-bank"), nil)
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
				t.Fatal(err)
			}
			found.Data[pageKey] = "uid-of-bank 9 b\n"
			if err := cluster.Update(t.Context(), found); err != nil {
				t.Fatal(err)
			}
		}, want: map[string]string{"uid-of-bank": "9 b", "uid-of-shop": "2 s"}},
		"nor forward after the restoration of etcd": {version: "99999", want: map[string]string{"uid-of-bank": "5"}, fails: true},
		"though somebody deleted it": {meanwhile: func(t *testing.T, cluster client.Client) {
			if err := cluster.Delete(t.Context(), configMapIn("operator", pageOf("uid-of-bank"), nil)); err != nil {
				t.Fatal(err)
			}
		}, want: map[string]string{"uid-of-bank": "5", "uid-of-shop": "2 s"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			cluster := fake.NewClientBuilder().WithObjects(tenant("bank"), tenant("shop")).WithObjects(recordIn(map[string]string{"uid-of-bank": "5"})...).Build()
			r := New(cluster, cluster, "operator")
			if _, _, err := r.Of(t.Context(), tenant("shop")); err != nil {
				t.Fatal(err)
			}
			r.Note(tenant("shop"), Given{2, "s"})
			p := r.pages[pageOf("uid-of-shop")]
			if test.version != "" {
				p.version = test.version
			}
			if test.meanwhile != nil {
				test.meanwhile(t, cluster)
			}
			if err := r.put(t.Context(), p); err != nil != test.fails {
				t.Errorf("writing says %v", err)
			}
			expectRecord(t, cluster, test.want)
		})
	}
}

func TestWithoutTheRecordNothingIsKnownToBeNew(t *testing.T) {
	broken := errors.New("the API server is busy")
	cluster := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return broken
		},
	})
	if _, _, err := New(cluster, cluster, "operator").Of(t.Context(), tenant("bank")); !errors.Is(err, broken) {
		t.Errorf("found %v", err)
	}
	unreadable := fake.NewClientBuilder().WithObjects(tenant("bank"), configMapIn("operator", pageOf("uid-of-bank"), map[string]string{pageKey: "uid-of-bank x\n"})).Build()
	if last, served, err := New(unreadable, unreadable, "operator").Of(t.Context(), tenant("bank")); last != (Given{}) || !served || err != nil {
		t.Errorf("found %q, %t, %v", last, served, err)
	}
}

// A ConfigMap has 1 MiB at most, and a set of one namespace must not cause a write with the data of all others.
func TestTheRecordOfTwentyThousandNamespacesIsWrittenByParts(t *testing.T) {
	var namespaces corev1.NamespaceList
	for i := range 20_000 {
		ns := tenant(fmt.Sprint("n", i))
		ns.UID = types.UID(fmt.Sprintf("%x", sha256.Sum256([]byte(ns.Name)))[:36])
		namespaces.Items = append(namespaces.Items, *ns)
	}
	var writes, largest int
	wrote := func(object client.Object) {
		text, err := json.Marshal(object)
		if err != nil {
			t.Error(err)
		}
		writes, largest = writes+1, max(largest, len(text))
	}
	cluster := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			*list.(*corev1.NamespaceList) = namespaces
			return nil
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			wrote(object)
			return c.Create(ctx, object, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			wrote(object)
			return c.Update(ctx, object, options...)
		},
	})
	r := New(cluster, cluster, "operator")
	if _, _, err := r.Of(t.Context(), &namespaces.Items[0]); err != nil {
		t.Fatal(err)
	}
	set := Beginning(fmt.Sprintf("sha256:%x", sha256.Sum256(nil)))
	for i := range namespaces.Items {
		r.Note(&namespaces.Items[i], Given{1_800_000_000_000, set})
	}
	r.write(t.Context())
	if writes != len(pageDigits) || largest > 256<<10 {
		t.Errorf("%d writes of %d bytes at most, expected %d of 256 KiB at most", writes, largest, len(pageDigits))
	}
	writes = 0
	r.Note(&namespaces.Items[7], Given{1_800_000_000_001, set})
	r.write(t.Context())
	if writes != 1 {
		t.Errorf("one namespace was given another set: %d writes, expected 1", writes)
	}
	next := New(cluster, cluster, "operator")
	for i := range namespaces.Items {
		want := Given{1_800_000_000_000, set}
		if i == 7 {
			want.Revision++
		}
		if last, served, err := next.Of(t.Context(), &namespaces.Items[i]); last != want || !served || err != nil {
			t.Fatalf("namespace %d was given %v, %t, %v; expected %v", i, last, served, err, want)
		}
	}
}

// An earlier version of the operator may be installed again. It accepts the state of a namespace that is not in its record.
func TestTheRecordOfAnEarlierVersionIsReadAndKept(t *testing.T) {
	for sentence, test := range map[string]struct {
		earlier, pages map[string]string
		want           Given
	}{
		"at the upgrade": {
			earlier: map[string]string{"uid-of-bank": "5 a"},
			want:    Given{5, "a"},
		},
		"when it was not written since": {
			earlier: map[string]string{"uid-of-bank": "5 a"},
			pages:   map[string]string{"uid-of-bank": "9 b"},
			want:    Given{9, "b"},
		},
		"when the earlier version was installed meanwhile": {
			earlier: map[string]string{"uid-of-bank": "12 c"},
			pages:   map[string]string{"uid-of-bank": "9 b"},
			want:    Given{12, "c"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			cluster := fake.NewClientBuilder().WithObjects(tenant("bank"), tenant("shop"), configMapIn("operator", earlierPage, test.earlier)).
				WithObjects(recordIn(test.pages)...).Build()
			r := New(cluster, cluster, "operator")
			if last, served, err := r.Of(t.Context(), tenant("bank")); last != test.want || !served || err != nil {
				t.Errorf("found %v, %t, %v", last, served, err)
			}
			r.Note(tenant("shop"), Given{20, "s"})
			ctx, stop := context.WithCancel(t.Context())
			stop()
			if err := r.Run(ctx); err != nil {
				t.Fatal(err)
			}
			all := map[string]string{"uid-of-bank": test.want.String(), "uid-of-shop": "20 s"}
			expectRecord(t, cluster, all)
			found, err := r.get(t.Context(), earlierPage)
			if err != nil || !maps.Equal(found.Data, all) {
				t.Errorf("the earlier version reads %v, %v; expected %v", found, err, all)
			}
		})
	}
}
