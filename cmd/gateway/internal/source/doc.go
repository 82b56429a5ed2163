// SPDX-License-Identifier: Apache-2.0

// Package source has the key providers that KeyProviders and ClusterKeyProviders describe. It
// follows these resources, the labels of namespaces, and the Secrets that the resources name,
// and nothing else.
//
// A change opens or replaces the one provider that it is about. The provider that was replaced
// serves calls that have begun for some more seconds. A provider whose Secret is gone, or may
// not be read any more, is closed.
//
// [Source.For] has the providers of one namespace, and reaches no provider of another one.
package source
