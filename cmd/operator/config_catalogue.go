// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crypto-broker/crypto-broker-operator/controllers/catalogue"
)

// checkCatalogue reads the flags about the catalogue and the excluded namespaces.
func (c *config) checkCatalogue(problem func(flag, found, expected string)) {
	var err error
	if c.catalogueProfiles, err = catalogue.Choose(c.catalogue); err != nil {
		problem("catalogue", c.catalogue, "all, or names of "+strings.Join(catalogue.Names(), ", "))
	}
	if c.catalogueLabels != "" {
		if c.catalogueSelector, err = metav1.ParseToLabelSelector(c.catalogueLabels); err != nil {
			problem("catalogue-namespaces", c.catalogueLabels, "a label selector such as environment=production or \"team in (a,b)\"")
		}
	}
	for _, name := range c.excludedNamespaces {
		if len(validation.IsDNS1123Label(name)) > 0 {
			problem("excluded-namespaces", name, "names of namespaces")
		}
	}
}
