// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	diff "gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

// podPaths are the paths of the pod template in the kinds that create pods.
var podPaths = map[string][]string{
	"v1 Pod":                   {},
	"v1 PodTemplate":           {"template"},
	"v1 ReplicationController": {"spec", "template"},
	"apps/v1 Deployment":       {"spec", "template"},
	"apps/v1 StatefulSet":      {"spec", "template"},
	"apps/v1 DaemonSet":        {"spec", "template"},
	"apps/v1 ReplicaSet":       {"spec", "template"},
	"batch/v1 Job":             {"spec", "template"},
	"batch/v1 CronJob":         {"spec", "jobTemplate", "spec", "template"},
}

// PodTemplate is the pod template in an object.
type PodTemplate struct {
	// fields are shared with the object, so a change of them changes the object.
	fields    map[string]any
	Pod       *corev1.Pod
	Namespace string
	// Claims are the names of the claim templates of a StatefulSet. Its pods get a volume for
	// each.
	Claims []string
}

// Template returns the pod template in a document, or nil if the kind has none. The error is a
// *injection.Refusal, because no API server accepts such an object.
func (d Document) Template(namespace string) (*PodTemplate, error) {
	path, known := podPaths[d.Text("apiVersion")+" "+d.Text("kind")]
	if !known {
		return nil, nil
	}
	fields := d.Object
	for i, key := range path {
		next, ok := fields[key].(map[string]any)
		if !ok {
			return nil, &injection.Refusal{Problems: []string{fmt.Sprintf("there is no %s, expected a pod template", joined(path[:i+1]))}}
		}
		fields = next
	}
	if own := d.Text("metadata", "namespace"); own != "" {
		namespace = own
	}
	data, err := json.Marshal(map[string]any{"metadata": fields["metadata"], "spec": fields["spec"]})
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	if err := utiljson.Unmarshal(data, pod); err != nil { // by the case of the names, as the API server does
		return nil, &injection.Refusal{Problems: []string{unreadable(joined(append(slices.Clone(path), "")), err)}}
	}
	return &PodTemplate{fields, pod, namespace, d.claims()}, nil
}

// claims returns the names of the claim templates in a StatefulSet.
func (d Document) claims() (names []string) {
	spec, _ := d.Object["spec"].(map[string]any)
	templates, _ := spec["volumeClaimTemplates"].([]any)
	for _, template := range templates {
		fields, _ := template.(map[string]any)
		metadata, _ := fields["metadata"].(map[string]any)
		if name, _ := metadata["name"].(string); name != "" && d.Text("kind") == "StatefulSet" {
			names = append(names, name)
		}
	}
	return names
}

// unreadable returns which field of a pod has a wrong type, with its path.
func unreadable(path string, err error) string {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		want := map[reflect.Kind]string{
			reflect.Slice: "a list", reflect.Struct: "an object", reflect.Map: "an object", reflect.String: "a text", reflect.Bool: "true or false",
		}[wrong.Type.Kind()]
		if want == "" {
			want = "a number"
		}
		return fmt.Sprintf("%s%s: found a value of the type %s, expected %s", path, wrong.Field, wrong.Value, want)
	case strings.Contains(err.Error(), resource.ErrFormatWrong.Error()):
		return path + "spec: found no valid quantity, expected one such as 100m or 64Mi"
	default:
		return fmt.Sprintf("%s: its pod cannot be read: %v", strings.TrimSuffix(path, "."), err)
	}
}

// Name returns the object's name for messages: Deployment "orders".
func (d Document) Name() string {
	name := d.Text("metadata", "name")
	if name == "" {
		name = d.Text("metadata", "generateName")
	}
	return fmt.Sprintf("%s %q", d.Text("kind"), name)
}

// joined returns a path in the usual notation, such as spec.template.
func joined(path []string) string { return strings.Join(path, ".") }

// Inject puts a broker into the pod, as the webhook would. Fields that the webhook does not
// change stay as written, even fields that this program does not know.
func (p *PodTemplate) Inject(template template.Template) (warnings []string, err error) {
	injected, warnings, err := injection.Inject(p.Pod, p.Namespace, nil, template)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(p.Pod)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(injected)
	if err != nil {
		return nil, err
	}
	operations, err := diff.CreatePatch(before, after)
	if err != nil {
		return nil, fmt.Errorf("compare the pod before and after: %w", err)
	}
	if p.fields["metadata"] == nil {
		p.fields["metadata"] = map[string]any{}
	}
	written, err := json.Marshal(p.fields)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, err
	}
	patched, err := patch.Apply(written)
	if err != nil {
		return nil, fmt.Errorf("write the broker into the manifest: %w", err)
	}
	clear(p.fields)
	return warnings, json.Unmarshal(patched, &p.fields)
}

// LabelledNamespaces returns, for each Namespace in the documents, whether its label
// asks for brokers.
func LabelledNamespaces(documents []Document) map[string]bool {
	labelled := map[string]bool{}
	for _, d := range documents {
		for _, item := range d.Items() {
			if item.Text("apiVersion") == "v1" && item.Text("kind") == "Namespace" {
				labelled[item.Text("metadata", "name")] = item.Text("metadata", "labels", contract.InjectionLabel) == contract.InjectionEnabled
			}
		}
	}
	return labelled
}

// Misplaced returns a sentence if the annotation is on a workload instead of its template, and
// otherwise an empty text.
func (d Document) Misplaced() string {
	value := d.Text("metadata", "annotations", contract.InjectAnnotation)
	if value == "" || d.Text("kind") == "Pod" {
		return ""
	}
	return fmt.Sprintf("own annotation %s: %q has no effect: it belongs to the template", contract.InjectAnnotation, value)
}
