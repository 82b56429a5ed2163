// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/manifest"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// Profiles are the profiles of manifests.
type Profiles struct {
	Namespaced []v1alpha1.CryptoProfile
	Cluster    []v1alpha1.ClusterCryptoProfile
}

// ReadProfiles returns the profiles of documents. A CryptoProfile without a namespace belongs to
// the given namespace. Objects of other kinds are left out. An invalid profile is an error, and
// so are documents without any profile.
func ReadProfiles(ctx context.Context, documents []manifest.Document, namespace string) (*Profiles, error) {
	schemas, err := manifest.ReadSchemas()
	if err != nil {
		return nil, err
	}
	all := &Profiles{}
	for _, d := range documents {
		for _, item := range d.Items() {
			if item.Text("apiVersion") != v1alpha1.GroupVersion.String() {
				continue
			}
			var problem string
			switch item.Text("kind") {
			case downgrade.KindNamespaced:
				var p v1alpha1.CryptoProfile
				if problem, err = decode(ctx, schemas, item, &p, func() field.ErrorList { return render.Validate(p.Name, &p.Spec) }); err != nil {
					return nil, err
				}
				if p.Namespace == "" {
					p.Namespace = namespace
				}
				if problem == "" && contract.IsExcluded(p.Namespace) {
					problem = fmt.Sprintf("metadata.namespace: namespace %s never gets profiles", p.Namespace)
				}
				all.Namespaced = append(all.Namespaced, p)
			case downgrade.KindCluster:
				var p v1alpha1.ClusterCryptoProfile
				if problem, err = decode(ctx, schemas, item, &p, func() field.ErrorList {
					errs := render.Validate(p.Name, &p.Spec.ProfileSpec)
					if p.Spec.NamespaceSelector != nil {
						errs = append(errs, render.ValidateSelector(p.Spec.NamespaceSelector)...)
					}
					return errs
				}); err != nil {
					return nil, err
				}
				all.Cluster = append(all.Cluster, p)
			}
			if problem != "" {
				return nil, fmt.Errorf("%s: %s: %s (kubectl crypto-broker validate lists all problems)", item.Place, item.Name(), problem)
			}
		}
	}
	if len(all.Namespaced)+len(all.Cluster) == 0 {
		return nil, fmt.Errorf("found no CryptoProfile and no ClusterCryptoProfile of %s in the manifests, expected at least one", v1alpha1.GroupVersion)
	}
	return all, nil
}

// decode reads a profile as the API server does, and returns its first problem.
func decode(ctx context.Context, schemas manifest.Schemas, d manifest.Document, into any, validate func() field.ErrorList) (problem string, err error) {
	filled, problems, err := schemas.Check(ctx, d.Text("kind"), d.Object)
	if err != nil {
		return "", err
	}
	if len(problems) > 0 {
		return problems[0], nil
	}
	if err := json.Unmarshal(filled, into); err != nil {
		return "", err
	}
	if errs := validate(); len(errs) > 0 {
		return strings.TrimSuffix(errs[0].Field+": "+errs[0].Detail, "."), nil
	}
	return "", nil
}
