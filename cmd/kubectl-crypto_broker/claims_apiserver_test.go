// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// claiming returns a StatefulSet whose container mounts its volume claims.
const claiming = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  serviceName: store
  selector: {matchLabels: {app: store}}
  template:
    metadata:
      labels: {app: store}
      annotations: {cryptobroker.io/inject: "true"}
    spec:
      containers: [{name: app, image: app, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

// makeClaiming creates the StatefulSet.
func makeClaiming(t *testing.T, namespace string) {
	t.Helper()
	set := &appsv1.StatefulSet{}
	if err := yaml.UnmarshalStrict([]byte(claiming), set); err != nil {
		t.Fatal(err)
	}
	if _, err := apiServer.AppsV1().StatefulSets(namespace).Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestAStatefulSetIsTriedWithTheVolumesOfItsClaims(t *testing.T) {
	ns := provided(t, covered(t))
	makeClaiming(t, ns)
	if code, stdout, stderr := plugin(t, "explain", "statefulset/store", "-n", ns); code != program.ExitOK || !strings.Contains(stdout, "a new pod of it gets a broker.") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	manifest := filepath.Join(t.TempDir(), "store.yaml")
	if err := os.WriteFile(manifest, []byte(claiming), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := plugin(t, "inject", "-f", manifest, "--from-cluster", "-n", ns)
	if code != program.ExitOK || !strings.Contains(stdout, "name: crypto-broker\n") || !strings.Contains(stdout, "mountPath: /data") ||
		strings.Contains(stdout, "persistentVolumeClaim") || strings.Contains(stdout, "$setElementOrder") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
}
