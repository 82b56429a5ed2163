// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

func TestConfigMapsWithTheSameSetShareItsTextInMemory(t *testing.T) {
	transform := ShareTexts()
	var first *byte
	for n := range 100 {
		own := fmt.Sprintf("%s %d", strings.Repeat("own", sharedText), n)
		found := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(configMapLabels), ManagedFields: []metav1.ManagedFieldsEntry{{}}},
			Data:       map[string]string{profile.FileName: strings.Repeat("set", sharedText), "own": own, "small": "signature"},
		}
		if _, err := transform(found); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			first = unsafe.StringData(found.Data[profile.FileName])
		}
		if unsafe.StringData(found.Data[profile.FileName]) != first {
			t.Fatalf("ConfigMap %d has a copy of the set", n)
		}
		if reflect.ValueOf(found.Labels).Pointer() != reflect.ValueOf(configMapLabels).Pointer() {
			t.Fatalf("ConfigMap %d has a copy of the labels", n)
		}
		if found.Data["own"] != own || found.Data["small"] != "signature" || found.ManagedFields != nil {
			t.Errorf("ConfigMap %d is changed otherwise, or has managed fields", n)
		}
	}
}

func TestAConfigMapKeepsItsOwnLabels(t *testing.T) {
	own := map[string]string{"team": "payments"}
	maps.Copy(own, configMapLabels)
	found := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(own)}}
	if _, err := ShareTexts()(found); err != nil || !maps.Equal(found.Labels, own) {
		t.Errorf("found the labels %v and error %v, expected %v", found.Labels, err, own)
	}
}

func TestAnObjectThatIsNoConfigMapIsLeftAlone(t *testing.T) {
	pod := &corev1.Pod{}
	if got, err := ShareTexts()(pod); got != any(pod) || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}
