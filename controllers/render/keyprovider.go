// SPDX-License-Identifier: Apache-2.0

package render

import (
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
)

// KeyProvider translates a KeyProvider or ClusterKeyProvider into the configuration of its
// provider, which has no credentials. It fails only if a duration cannot be parsed, which no API
// server stores.
func KeyProvider(objectName string, spec *v1alpha1.KeyProviderSpec) (*providers.Config, field.ErrorList) {
	var problems field.ErrorList
	duration := func(inFile, text string) time.Duration {
		if text == "" {
			return 0
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			problems = append(problems, field.Invalid(path(inFile, true), text, "expected a duration such as 1m30s"))
		}
		return d
	}
	c := &providers.Config{Name: objectName, Type: spec.Type, ServerName: spec.ServerName, CacheTime: duration("CacheTime", spec.CacheTime)}
	if spec.CacheTime != "" && c.CacheTime == 0 {
		c.CacheTime = -1 // in a file, 0 is the default
	}
	for _, endpoint := range spec.Endpoints {
		c.Endpoints = append(c.Endpoints, string(endpoint))
	}
	if s := spec.Connections; s != nil {
		c.Connections = providers.Connections{
			Min: int(s.Min), Max: int(s.Max), RoundRobin: s.RoundRobin,
			Lifetime:       duration("Connections.Lifetime", string(s.Lifetime)),
			IdleTime:       duration("Connections.IdleTime", string(s.IdleTime)),
			ConnectTimeout: duration("Connections.ConnectTimeout", string(s.ConnectTimeout)),
			RequestTimeout: duration("Connections.RequestTimeout", string(s.RequestTimeout)),
		}
	}
	if s := spec.OpenBao; s != nil {
		c.OpenBao = &providers.OpenBaoSettings{Engine: s.Engine, Mount: s.Mount, Namespace: s.Namespace, Role: s.Role}
	}
	if s := spec.AWSKMS; s != nil {
		c.AWSKMS = &providers.AWSKMSSettings{Region: s.Region}
	}
	if s := spec.PKCS11; s != nil {
		c.PKCS11 = &providers.PKCS11Settings{Module: s.Module, TokenLabel: s.TokenLabel}
	}
	return c, problems
}

// ValidateKeyProvider returns all problems of the configuration of a KeyProvider or
// ClusterKeyProvider, with the field paths of the resource.
func ValidateKeyProvider(objectName string, spec *v1alpha1.KeyProviderSpec) field.ErrorList {
	config, problems := KeyProvider(objectName, spec)
	for _, problem := range config.Check() {
		problems = append(problems, field.Invalid(path(problem.Field, false), field.OmitValueType{}, problem.Message))
	}
	return problems
}

// KeyProviderNames returns the names of the providers of the keys that a profile lists, in
// order and each once.
func KeyProviderNames(spec *v1alpha1.ProfileSpec) []string {
	var names []string
	for _, operation := range reflect.ValueOf(spec.API).Fields() {
		if operation.Kind() != reflect.Pointer || operation.IsNil() || operation.Elem().Kind() != reflect.Struct {
			continue
		}
		for _, value := range operation.Elem().Fields() {
			ids, _ := value.Interface().([]v1alpha1.KeyID)
			for _, key := range ids {
				if name, _ := keys.SplitID(key.ID); name != "" {
					names = append(names, name)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// MayUse reports whether a provider allows a profile, by the name that applications use.
func MayUse(spec *v1alpha1.KeyProviderSpec, profileName string) bool {
	return len(spec.AllowedProfiles) == 0 || slices.Contains(spec.AllowedProfiles, v1alpha1.AllowedProfileName(profileName))
}

// ActsAsGateway reports whether a provider would use the identity or the files of the key
// gateway. A KeyProvider must not do that.
func ActsAsGateway(spec *v1alpha1.KeyProviderSpec) bool {
	return spec.Type == providers.PKCS11 || spec.OpenBao != nil && spec.OpenBao.Role != "" || spec.Type == providers.AWSKMS && spec.Credentials == nil
}
