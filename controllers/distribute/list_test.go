// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

func TestALongListOfPodsComesInPartsThatAreStripped(t *testing.T) {
	var asked metav1.ListOptions
	from := &cache.ListWatch{ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
		asked = options
		return &corev1.PodList{
			ListMeta: metav1.ListMeta{Continue: "there is more", ResourceVersion: "7"},
			Items: []corev1.Pod{{
				ObjectMeta: metav1.ObjectMeta{Name: "app", Annotations: map[string]string{"other": "text"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
			}},
		}, nil
	}}
	list, err := inParts(from).ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "0", Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	if asked.ResourceVersion != "" || asked.Limit != 500 {
		t.Errorf("asked for version %q and %d pods, expected none, with which the limit counts, and 500", asked.ResourceVersion, asked.Limit)
	}
	pods := list.(*corev1.PodList)
	if pods.Continue != "there is more" || pods.ResourceVersion != "7" || len(pods.Items) != 1 {
		t.Errorf("found %+v", pods)
	}
	if pod := pods.Items[0]; pod.Name != "app" || len(pod.Spec.Containers)+len(pod.Annotations) != 0 {
		t.Errorf("found %+v, expected the pod without what nobody reads", pod)
	}
}
