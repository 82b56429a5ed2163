// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestTheStampChangesWithEverythingThatGoesIntoPods(t *testing.T) {
	changes := map[string]func(*Template){
		"the image":       func(t *Template) { t.Image = "example.com/broker:2" },
		"the pull policy": func(t *Template) { t.PullPolicy = corev1.PullAlways },
		"the group":       func(t *Template) { t.SocketGroup = 1 },
		"the port":        func(t *Template) { t.StatusPort = 1024 },
		"the resources": func(t *Template) {
			t.Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
		},
		"the log level": func(t *Template) { t.LogLevel = "debug" },
		"FIPS 140-3":    func(t *Template) { t.RequireFIPS = true },
		"the traces":    func(t *Template) { t.Traces = testTraces() },
		"the audit":     func(t *Template) { t.Audit = Audit{Endpoint: "http://collector:4317"} },
		"the sampler":   func(t *Template) { t.Traces = testTraces(); t.Traces.Sampler = "always_on" },
	}
	stamps := map[string]string{"nothing": testTemplate().stamp()}
	for name, change := range changes {
		template := testTemplate()
		change(&template)
		for other, stamp := range stamps {
			if stamp == template.stamp() {
				t.Errorf("%s and %s lead to the same stamp %q", name, other, stamp)
			}
		}
		stamps[name] = template.stamp()
	}

	version := testTemplate()
	version.Version = "0.2.0"
	if before, after := testTemplate().stamp(), version.stamp(); strings.TrimPrefix(before, "0.1.0/") != strings.TrimPrefix(after, "0.2.0/") {
		t.Errorf("another version with the same template leads from %q to %q, expected the same digits", before, after)
	}
	assigned := testTemplate()
	assigned.NamespaceUserIDs = true
	if before, after := testTemplate().stamp(), assigned.stamp(); before != after {
		t.Errorf("a namespace that assigns user IDs leads from %q to %q, expected the same stamp", before, after)
	}
}

func TestATemplateThatCannotBeUsedIsRefusedWithEveryReason(t *testing.T) {
	err := Template{SocketGroup: 70000, StatusPort: 80, PullPolicy: "Sometimes"}.Validate()
	if err == nil {
		t.Fatal("found no error")
	}
	for _, want := range []string{
		"Image is empty",
		"SocketGroup is 70000, expected a group ID from 1 to 65535",
		"StatusPort is 80, expected a port from 1024 to 65535",
		`PullPolicy is "Sometimes", expected Always, IfNotPresent or Never`,
		"Version is empty",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error %q does not say %q", err, want)
		}
	}
	if err := testTemplate().Validate(); err != nil {
		t.Errorf("a template with default values is refused: %v", err)
	}
}

func TestAnImageIsAllowedWithItsTagOrDigestOnly(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for image, want := range map[string]string{
		"registry.example/broker:1.2.3":                "",
		"registry.example:5000/team/broker:v1":         "",
		"broker:1":                                     "",
		"registry.example/broker@" + digest:            "",
		"registry.example/broker:1@" + digest:          "",
		"registry.example/broker":                      "with a tag or a digest",
		"registry.example:5000/broker":                 "with a tag or a digest",
		"registry.example/broker:":                     "with a tag or a digest",
		"registry.example/broker@sha256:5a":            "64 hexadecimal digits",
		"registry.example/broker:1@latest":             "64 hexadecimal digits",
		"registry.example/*:1":                         "an image such as",
		"registry.example/broker:1,registry.example/b": "an image such as",
		"": "an image such as",
	} {
		template := testTemplate()
		template.AllowedImages = []string{image}
		switch err := template.Validate(); {
		case want == "" && err != nil:
			t.Errorf("%s is refused: %v", image, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: found the error %v, expected one with %q", image, err, want)
		}
	}
}

func TestTheStampDoesNotChangeWithWhatPodsMayChoose(t *testing.T) {
	other := testTemplate()
	other.AllowedImages = nil
	if before, after := testTemplate().stamp(), other.stamp(); before != after {
		t.Errorf("other images that are allowed lead from %q to %q, expected the same stamp", before, after)
	}
}
