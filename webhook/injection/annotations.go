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

	// maxAnnotationsSize is what Kubernetes allows for keys and values of all
	// annotations of an object together, in bytes.
	maxAnnotationsSize = 256 << 10

	// annotationsReserve is left for annotations that are added later: by
	// other webhooks, controllers and the operator itself.
	annotationsReserve = 16 << 10

	// evictableAnnotation lists volumes that may be lost when the cluster
	// autoscaler removes a node. Without it a local volume keeps the node.
	evictableAnnotation = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"

	// scrapePrefix is what the annotations begin with by which Prometheus is
	// usually configured to find pods.
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

// snapshotFits reports whether the pod can carry the profiles and their signature,
// if they have one, in annotations. If not, it gets them from the ConfigMap alone.
func snapshotFits(pod *corev1.Pod, profiles, signature []byte) bool {
	size := len(profiles) + len(signature)
	if profiles == nil || size > maxSnapshotSize {
		return false
	}
	size += len(contract.ProfilesSnapshotAnnotation) + len(contract.ProfilesSnapshotSignatureAnnotation)
	for key, value := range pod.Annotations {
		// The reserve has room for what annotate sets, so that a second call
		// gives the same answer.
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
	// The webhook removes a snapshot that the pod came with, because whoever creates
	// the pod could choose the profiles in it.
	delete(pod.Annotations, contract.ProfilesSnapshotAnnotation)
	delete(pod.Annotations, contract.ProfilesSnapshotSignatureAnnotation)
	// A copy of a pod has the digest of its original, which the operator would take
	// for one that it wrote itself.
	delete(pod.Annotations, contract.ProfilesDigestAnnotation)
	if r.snapshot {
		pod.Annotations[contract.ProfilesSnapshotAnnotation] = string(profiles)
		if len(r.template.Seal.Keys) > 0 {
			pod.Annotations[contract.ProfilesSnapshotSignatureAnnotation] = string(r.template.Seal.Signature)
		}
	}
	pod.Annotations[evictableAnnotation] = addToList(pod.Annotations[evictableAnnotation], contract.SocketVolume)

	// These annotations have room for one endpoint, and the owner's counts. Beside it,
	// a PodMonitor scrapes the broker.
	if former := scrapeAnnotations(r.formerPort); hasAll(pod.Annotations, former) {
		maps.DeleteFunc(pod.Annotations, func(key, _ string) bool { return former[key] != "" })
	}
	if r.statusPort && !hasPrefix(pod.Annotations, scrapePrefix) {
		maps.Copy(pod.Annotations, scrapeAnnotations(r.template.StatusPort))
	}
}

// scrapeAnnotations returns the annotations by which Prometheus finds a broker with this
// status port.
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
