// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// targets writes a file with all pods of a cluster, in the form of Prometheus' file_sd_configs and with the labels of
// its kubernetes_sd_configs.
type targets struct {
	path string
	pods listers.PodLister
	stop chan struct{}
	done sync.WaitGroup

	mu  sync.Mutex
	err error // of the last writing
}

// followPods writes the file, and again whenever a pod changes, until close is called.
func followPods(kubeconfig, path string) (*targets, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(clientset, 0)
	informer := factory.Core().V1().Pods()
	t := &targets{path: path, pods: informer.Lister(), stop: make(chan struct{})}
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default: // the writer will see this change, too
		}
	}
	if _, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notify() },
		UpdateFunc: func(any, any) { notify() },
		DeleteFunc: func(any) { notify() },
	}); err != nil {
		return nil, err
	}
	factory.Start(t.stop)
	factory.WaitForCacheSync(t.stop)
	if err := t.write(); err != nil {
		close(t.stop)
		return nil, err
	}
	t.done.Go(func() {
		for {
			select {
			case <-t.stop:
				return
			case <-changed:
				err := t.write()
				t.mu.Lock()
				t.err = err
				t.mu.Unlock()
			}
		}
	})
	t.done.Go(func() { <-t.stop; factory.Shutdown() })
	return t, nil
}

// close stops following the pods, and returns the error of the last writing.
func (t *targets) close() error {
	close(t.stop)
	t.done.Wait()
	return t.err
}

// group is an entry of the file.
type group struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// notInLabels matches characters that the name of a label can't have.
var notInLabels = regexp.MustCompile(`[^a-zA-Z0-9_]`)

func (t *targets) write() error {
	pods, err := t.pods.List(labels.Everything())
	if err != nil {
		return err
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	groups := []group{}
	for _, pod := range pods {
		if pod.Status.PodIP == "" {
			continue // not yet on a node
		}
		discovered := map[string]string{
			"__meta_kubernetes_namespace": pod.Namespace,
			"__meta_kubernetes_pod_name":  pod.Name,
			"__meta_kubernetes_pod_ip":    pod.Status.PodIP,
			"__meta_kubernetes_pod_phase": string(pod.Status.Phase),
		}
		if owner := metav1.GetControllerOf(pod); owner != nil {
			discovered["__meta_kubernetes_pod_controller_kind"] = owner.Kind
			discovered["__meta_kubernetes_pod_controller_name"] = owner.Name
		}
		for name, value := range pod.Annotations {
			discovered["__meta_kubernetes_pod_annotation_"+notInLabels.ReplaceAllString(name, "_")] = value
		}
		groups = append(groups, group{[]string{pod.Status.PodIP}, discovered})
	}
	content, err := json.MarshalIndent(groups, "", "  ")
	if err != nil {
		return err
	}
	// Prometheus reads the file at any time and must not read half of it.
	next := fmt.Sprintf("%s.%d", t.path, time.Now().UnixNano())
	if err := os.WriteFile(next, content, 0o644); err != nil {
		return err
	}
	return os.Rename(next, t.path)
}
