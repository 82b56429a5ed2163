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
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// CreateFromChart creates the objects of one template of the chart, such as
// "templates/rbac/catalogue.yaml", in the operator's namespace, which has to exist. values are
// arguments of --set.
func CreateFromChart(ctx context.Context, admin *rest.Config, template string, values ...string) error {
	objects, err := FromChart(ctx, admin, template, values...)
	if err != nil {
		return err
	}
	kubernetes, err := client.New(admin, client.Options{})
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := kubernetes.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// FromChart returns the objects of one template of the chart for the version of the API server.
func FromChart(ctx context.Context, admin *rest.Config, template string, values ...string) ([]*unstructured.Unstructured, error) {
	root, err := environment.Repository()
	if err != nil {
		return nil, err
	}
	discover, err := discovery.NewDiscoveryClientForConfig(admin)
	if err != nil {
		return nil, err
	}
	version, err := discover.ServerVersion()
	if err != nil {
		return nil, err
	}
	helm, err := environment.Command(ctx, "", io.Discard, filepath.Join(root, "hack", "tools", "build"), "helm")
	if err != nil {
		return nil, err
	}
	if helm, err = filepath.Abs(strings.TrimSpace(helm)); err != nil {
		return nil, err
	}
	rendered, err := environment.Command(ctx, "", nil, helm, "template", environment.Release, environment.Chart(root),
		"--namespace", environment.Namespace, "--kube-version", version.GitVersion, "--show-only", template, "--set", strings.Join(values, ","))
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(rendered)), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what %s renders: %w", template, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
