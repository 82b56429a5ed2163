// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	diff "gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/webhook"
)

// podPaths is where the pod is in the kinds that make pods.
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

// podTemplate is the pod in an object.
type podTemplate struct {
	// fields are those of the object itself: a change is one of the object.
	fields    map[string]any
	pod       *corev1.Pod
	namespace string
}

// template finds the pod in a document; nil if its kind has none.
func (d document) template(namespace string) (*podTemplate, error) {
	path, known := podPaths[d.text("apiVersion")+" "+d.text("kind")]
	if !known {
		return nil, nil
	}
	fields := d.object
	for i, key := range path {
		next, ok := fields[key].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: %s has no %s, expected the template of a pod there", d.place, d.name(), joined(path[:i+1]))
		}
		fields = next
	}
	if own := d.text("metadata", "namespace"); own != "" {
		namespace = own
	}
	data, err := json.Marshal(map[string]any{"metadata": fields["metadata"], "spec": fields["spec"]})
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(data, pod); err != nil {
		return nil, fmt.Errorf("%s: the pod in %s cannot be read: %w", d.place, d.name(), err)
	}
	return &podTemplate{fields, pod, namespace}, nil
}

// name is how the object is called in messages: Deployment "orders".
func (d document) name() string {
	name := d.text("metadata", "name")
	if name == "" {
		name = d.text("metadata", "generateName")
	}
	return fmt.Sprintf("%s %q", d.text("kind"), name)
}

func joined(path []string) string {
	text := path[0]
	for _, key := range path[1:] {
		text += "." + key
	}
	return text
}

// inject puts a broker into the pod, as the webhook would. What the webhook does
// not touch stays as it was written, be it known to this program or not.
func (p *podTemplate) inject(template webhook.Template) (warnings []string, err error) {
	injected, warnings, err := webhook.Inject(p.pod, p.namespace, nil, template)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(p.pod)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(injected)
	if err != nil {
		return nil, err
	}
	operations, err := diff.CreatePatch(before, after)
	if err != nil {
		return nil, fmt.Errorf("comparing the pod before and after: %w", err)
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
		return nil, fmt.Errorf("writing the broker into the manifest: %w", err)
	}
	clear(p.fields)
	return warnings, json.Unmarshal(patched, &p.fields)
}

// labelledNamespaces are those whose manifests ask for brokers.
func labelledNamespaces(documents []document) map[string]bool {
	labelled := map[string]bool{}
	for _, d := range documents {
		for _, item := range d.items() {
			if item.text("apiVersion") == "v1" && item.text("kind") == "Namespace" {
				labelled[item.text("metadata", "name")] = item.text("metadata", "labels", v1alpha1.InjectionLabel) == v1alpha1.InjectionEnabled
			}
		}
	}
	return labelled
}
