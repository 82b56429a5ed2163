// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

const (
	// maxSnapshotSize is the largest profile file, in bytes and together with its
	// signature file, that is copied into annotations.
	maxSnapshotSize = 16 << 10

	// maxAnnotationsSize is the largest total size in bytes that Kubernetes allows for the keys
	// and values of an object's annotations.
	maxAnnotationsSize = 256 << 10

	// annotationsReserve is the number of bytes that stay free for annotations that other
	// webhooks, controllers and the operator itself add later.
	annotationsReserve = 16 << 10

	// evictableAnnotation lists volumes that may be lost when the cluster autoscaler removes a
	// node. Without it, a local volume prevents the removal of the node.
	evictableAnnotation = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"

	// scrapePrefix is the prefix of the annotations by which Prometheus usually finds pods.
	scrapePrefix = "prometheus.io/"
)

// annotationsSet are the annotations that annotate sets or adds to.
var annotationsSet = []string{
	contract.InjectedAnnotation,
	contract.ProfilesSnapshotAnnotation,
	contract.ProfilesSnapshotSignatureAnnotation,
	evictableAnnotation,
	scrapePrefix + "scrape",
	scrapePrefix + "port",
	scrapePrefix + "path",
}

// snapshotFits reports whether the pod can carry the profiles and their signature, if they have
// one, in annotations. Otherwise the pod gets them only from the ConfigMap.
func snapshotFits(pod *corev1.Pod, profiles, signature []byte) bool {
	size := len(profiles) + len(signature)
	if len(profiles) == 0 || size > maxSnapshotSize {
		return false
	}
	size += len(contract.ProfilesSnapshotAnnotation) + len(contract.ProfilesSnapshotSignatureAnnotation)
	// The owner of the pod may have a long list.
	size += len(evictableAnnotation) + len(addToList(pod.Annotations[evictableAnnotation], contract.SocketVolume))
	for key, value := range pod.Annotations {
		// The reserve has room for the other annotations that annotate sets, so a second call
		// returns the same.
		if !slices.Contains(annotationsSet, key) {
			size += len(key) + len(value)
		}
	}
	return size <= maxAnnotationsSize-annotationsReserve
}

// annotate sets the annotations of an injected pod.
func (r *rendering) annotate(pod *corev1.Pod, profiles []byte) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[contract.InjectedAnnotation] = r.stamp
	// The webhook removes a snapshot of the request, because the creator of the pod could choose
	// the profiles in it.
	delete(pod.Annotations, contract.ProfilesSnapshotAnnotation)
	delete(pod.Annotations, contract.ProfilesSnapshotSignatureAnnotation)
	// A copy of a pod has the digest of its original, and the operator would believe that it has
	// written it.
	delete(pod.Annotations, contract.ProfilesDigestAnnotation)
	if r.snapshot {
		pod.Annotations[contract.ProfilesSnapshotAnnotation] = string(profiles)
		if len(r.template.Seal.Keys) > 0 {
			pod.Annotations[contract.ProfilesSnapshotSignatureAnnotation] = string(r.template.Seal.Signature)
		}
	}
	pod.Annotations[evictableAnnotation] = addToList(pod.Annotations[evictableAnnotation], contract.SocketVolume)

	// These annotations describe one endpoint, and the endpoint of the owner takes precedence.
	// Then a PodMonitor can scrape the broker.
	if former := scrapeAnnotations(r.formerPort); hasAll(pod.Annotations, former) {
		maps.DeleteFunc(pod.Annotations, func(key, _ string) bool { return former[key] != "" })
	}
	if r.statusPort && !hasPrefix(pod.Annotations, scrapePrefix) {
		maps.Copy(pod.Annotations, scrapeAnnotations(r.template.StatusPort))
	}
}

// scrapeAnnotations returns the annotations with which Prometheus finds a broker with this status
// port.
func scrapeAnnotations(statusPort int32) map[string]string {
	return map[string]string{
		scrapePrefix + "scrape": "true",
		scrapePrefix + "port":   strconv.Itoa(int(statusPort)),
		scrapePrefix + "path":   contract.MetricsPath,
	}
}

func hasAll(annotations, some map[string]string) bool {
	for key, value := range some {
		if annotations[key] != value {
			return false
		}
	}
	return true
}

// addToList adds an item to a list separated by commas, if it is not there.
func addToList(list, item string) string {
	if strings.TrimSpace(list) == "" {
		return item
	}
	for found := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(found) == item {
			return list
		}
	}
	return list + "," + item
}

func hasPrefix(annotations map[string]string, prefix string) bool {
	for key := range annotations {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}
