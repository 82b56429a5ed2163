// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"context"
	"errors"
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

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

func tenant(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
}

// recordIn returns the ConfigMap with these revisions by UID.
func recordIn(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "operator", Name: v1alpha1.ProfilesConfigMap}, Data: data}
}

func expectRecord(t *testing.T, cluster client.Client, want map[string]string) {
	t.Helper()
	found, err := get(t.Context(), cluster, client.ObjectKeyFromObject(recordIn(nil)))
	if err != nil {
		t.Fatal(err)
	}
	if found == nil || !maps.Equal(found.Data, want) {
		t.Errorf("found %v, expected %v", found, want)
	}
}

func TestTheRecordOutlastsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fake.NewClientBuilder().WithObjects(tenant("bank"), tenant("shop")).Build()
		first := newRecord(cluster, cluster, "operator")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- first.run(ctx) }()
		for _, name := range []string{"bank", "shop"} {
			if last, served, err := first.of(ctx, tenant(name)); served || err != nil {
				t.Errorf("%s was given %q, %t, %v", name, last, served, err)
			}
		}
		first.note(tenant("bank"), given{5, "a"})
		<-time.After(2 * recordPause) // in no real time
		expectRecord(t, cluster, map[string]string{"uid-of-bank": "5 a"})
		first.note(tenant("shop"), given{7, ""})
		first.note(tenant("bank"), given{4, "b"}) // as after the clock was put back
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		expectRecord(t, cluster, map[string]string{"uid-of-bank": "5 a", "uid-of-shop": "7"})

		if err := cluster.Delete(t.Context(), tenant("shop")); err != nil {
			t.Fatal(err)
		}
		second := newRecord(cluster, cluster, "operator")
		if last, served, err := second.of(t.Context(), tenant("bank")); last != (given{5, "a"}) || !served || err != nil {
			t.Errorf("found %q, %t, %v", last, served, err)
		}
		if _, served, _ := second.of(t.Context(), tenant("shop")); served {
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
			cluster := fake.NewClientBuilder().WithObjects(tenant("bank"), tenant("shop"), recordIn(all)).Build()
			r := newRecord(cluster, cluster, "operator")
			if test.read {
				if _, _, err := r.of(t.Context(), tenant("bank")); err != nil {
					t.Fatal(err)
				}
			}
			r.drop("uid-of-shop")
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
			found := recordIn(nil)
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
				t.Fatal(err)
			}
			found.Data["uid-of-bank"] = "9 b"
			if err := cluster.Update(t.Context(), found); err != nil {
				t.Fatal(err)
			}
		}, want: map[string]string{"uid-of-bank": "9 b", "uid-of-shop": "2 s"}},
		"nor forward after the restoration of etcd": {version: "99999", want: map[string]string{"uid-of-bank": "5"}, fails: true},
		"though somebody deleted it": {meanwhile: func(t *testing.T, cluster client.Client) {
			if err := cluster.Delete(t.Context(), recordIn(nil)); err != nil {
				t.Fatal(err)
			}
		}, want: map[string]string{"uid-of-bank": "5", "uid-of-shop": "2 s"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			cluster := fake.NewClientBuilder().WithObjects(tenant("bank"), tenant("shop"), recordIn(map[string]string{"uid-of-bank": "5"})).Build()
			r := newRecord(cluster, cluster, "operator")
			if _, _, err := r.of(t.Context(), tenant("shop")); err != nil {
				t.Fatal(err)
			}
			r.note(tenant("shop"), given{2, "s"})
			if test.version != "" {
				r.version = test.version
			}
			if test.meanwhile != nil {
				test.meanwhile(t, cluster)
			}
			if err := r.put(t.Context(), r.last); err != nil != test.fails {
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
	if _, _, err := newRecord(cluster, cluster, "operator").of(t.Context(), tenant("bank")); !errors.Is(err, broken) {
		t.Errorf("found %v", err)
	}
	unreadable := fake.NewClientBuilder().WithObjects(tenant("bank"), recordIn(map[string]string{"uid-of-bank": "x"})).Build()
	if last, served, err := newRecord(unreadable, unreadable, "operator").of(t.Context(), tenant("bank")); last != (given{}) || !served || err != nil {
		t.Errorf("found %q, %t, %v", last, served, err)
	}
}
