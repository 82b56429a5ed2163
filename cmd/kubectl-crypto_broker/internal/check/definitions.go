// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/config/crd"
)

// resources are the resources that the operator defines.
var resources = []string{"cryptoprofiles", "clustercryptoprofiles", "injectiontemplates", "keyproviders", "clusterkeyproviders", "keyaccesspolicies", "keyaccesspeers"}

const installDefinitions = "set crds.install=true of the chart, or apply config/crd"

// definitions checks that the resource definitions exist, are established, and belong to this
// version.
func (c *Checker) definitions(ctx context.Context) (State, string) {
	var differ []string
	for _, resource := range resources {
		name := resource + "." + v1alpha1.GroupVersion.Group
		raw, err := apierror.Body(c.Client.CoreV1().RESTClient().Get().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", name).Do(ctx))
		switch {
		case apierrors.IsNotFound(err):
			return Failed, fmt.Sprintf("the resource definition %s is not installed: %s", name, installDefinitions)
		case apierror.LacksRight(err):
			return c.discovered(err)
		case err != nil:
			return cannotTell("whether the resource definitions are installed", err)
		}
		var found apiextensionsv1.CustomResourceDefinition
		if err := json.Unmarshal(raw, &found); err != nil {
			return cannotTell("what the resource definition "+name+" contains", err)
		}
		established := func(condition apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
		}
		if !slices.ContainsFunc(found.Status.Conditions, established) {
			return Failed, fmt.Sprintf("the resource definition %s is not established: kubectl describe crd %s says why", name, name)
		}
		same, err := isOfThisVersion(resource, &found)
		if err != nil {
			return cannotTell("whether the resource definition "+name+" equals the definition in this plugin", err)
		}
		if !same {
			differ = append(differ, name)
		}
	}
	if len(differ) > 0 {
		return Warning, fmt.Sprintf("the resource definitions are established, and %s has another schema than this plugin (%s) knows: upgrade the older one of plugin and chart; for the chart, %s",
			strings.Join(differ, ", "), c.Version, installDefinitions)
	}
	return OK, fmt.Sprintf("%s are established, with the schemas that this plugin knows", strings.Join(resources, ", "))
}

// discovered reports whether the API server has the resources. Every user may ask that.
func (c *Checker) discovered(missing error) (State, string) {
	served, err := c.Client.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return cannotTell("whether the resource definitions are installed", err)
	}
	for _, resource := range resources {
		has := false
		if served != nil {
			for i := range served.APIResources {
				has = has || served.APIResources[i].Name == resource
			}
		}
		if !has {
			return Failed, fmt.Sprintf("the API server has no resource %s.%s: %s", resource, v1alpha1.GroupVersion.Group, installDefinitions)
		}
	}
	return cannotTell("whether the resource definitions are of this version; the API server has the resources", missing)
}

// isOfThisVersion reports whether a resource definition has the schemas of the one that is
// part of this program.
func isOfThisVersion(resource string, found *apiextensionsv1.CustomResourceDefinition) (bool, error) {
	data, err := crd.Definitions.ReadFile(fmt.Sprintf("bases/%s_%s.yaml", v1alpha1.GroupVersion.Group, resource))
	if err != nil {
		return false, err
	}
	var known apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &known); err != nil {
		return false, err
	}
	schemas := func(definition *apiextensionsv1.CustomResourceDefinition) (map[string]any, error) {
		all := map[string]any{}
		for i := range definition.Spec.Versions {
			version := &definition.Spec.Versions[i]
			text, err := json.Marshal(version.Schema)
			if err != nil {
				return nil, err
			}
			var schema any
			if err := json.Unmarshal(text, &schema); err != nil {
				return nil, err
			}
			all[version.Name] = schema
		}
		return all, nil
	}
	a, err := schemas(found)
	if err != nil {
		return false, err
	}
	b, err := schemas(&known)
	return reflect.DeepEqual(a, b), err
}
