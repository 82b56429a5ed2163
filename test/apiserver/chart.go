// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// CreateFromChart creates the objects of one template of the chart, such as
// "templates/rbac/catalogue.yaml", in the operator's namespace, which has to exist. values are
// arguments of --set.
func CreateFromChart(ctx context.Context, admin *rest.Config, template string, values ...string) error {
	root, err := environment.Repository()
	if err != nil {
		return err
	}
	helm, err := environment.Command(ctx, "", io.Discard, filepath.Join(root, "hack", "tools", "build"), "helm")
	if err != nil {
		return err
	}
	if helm, err = filepath.Abs(strings.TrimSpace(helm)); err != nil {
		return err
	}
	rendered, err := environment.Command(ctx, "", io.Discard, helm, "template", environment.Release, environment.Chart(root),
		"--namespace", environment.Namespace, "--show-only", template, "--set", strings.Join(values, ","))
	if err != nil {
		return err
	}
	kubernetes, err := client.New(admin, client.Options{})
	if err != nil {
		return err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(rendered)), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read what %s renders: %w", template, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if err := kubernetes.Create(ctx, object); err != nil {
			return err
		}
	}
}
