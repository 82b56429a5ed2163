// SPDX-License-Identifier: Apache-2.0

package template

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// testTemplate is an operator's with default values.
func testTemplate() (template Template) {
	document, err := os.ReadFile("../testdata/template.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(document, &template)
	}
	if err != nil {
		panic(err)
	}
	return template
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
