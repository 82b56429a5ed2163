// SPDX-License-Identifier: Apache-2.0

// Package render turns CryptoProfiles and ClusterCryptoProfiles into profile files, and
// KeyProviders and ClusterKeyProviders into the configuration of their providers.
//
// Document translates one resource into a profile of a file. Validate returns the problems of a
// resource with its field paths. It uses the compiler of the broker, so it accepts exactly the
// profiles that a broker accepts. Effective merges all profiles that apply in a namespace into
// the bytes of its profile file.
//
// All functions are pure. The same resources in any order give the same bytes.
package render

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// Name returns the name that applications use for the profile of an object.
func Name(objectName string, spec *v1alpha1.ProfileSpec) string {
	if spec.ProfileName != "" {
		return spec.ProfileName
	}
	return objectName
}

// Document translates a resource into a profile of a file. objectName is the resource's
// metadata.name. It fails only if a free-form value of kms is not JSON, which no API server
// stores.
func Document(objectName string, spec *v1alpha1.ProfileSpec) (profile.Profile, error) {
	p := profile.Profile{Name: Name(objectName, spec)}
	copyValue(&p.API, &spec.API)
	copyValue(&p.Settings, &spec.Settings)
	copyValue(&p.Callers, &spec.Callers)
	copyValue(&p.Audit, &spec.Audit)
	copyValue(&p.Deprecation, &spec.Deprecation)
	if k := spec.KMS; k != nil {
		config, err := values(k.Config)
		if err != nil {
			return profile.Profile{}, fmt.Errorf("spec.kms.config: %w", err)
		}
		cache, err := values(k.Cache)
		if err != nil {
			return profile.Profile{}, fmt.Errorf("spec.kms.cache: %w", err)
		}
		p.KMS = &profile.KMS{Client: k.Client}
		if len(config) > 0 {
			p.KMS.Config = config
		}
		if len(cache) > 0 {
			p.KMS.Cache = cache
		}
	}
	return p, nil
}

// values decodes free-form JSON. A whole number stays a whole number.
func values(in map[string]apiextensionsv1.JSON) (map[string]any, error) {
	if in == nil {
		return nil, nil
	}
	out := make(map[string]any, len(in))
	for _, key := range slices.Sorted(maps.Keys(in)) {
		var value any
		if err := json.Unmarshal(in[key].Raw, &value); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		out[key] = value
	}
	return out, nil
}
