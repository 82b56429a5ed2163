// SPDX-License-Identifier: Apache-2.0

// Package providersource has the key providers that KeyProviders and ClusterKeyProviders describe. It
// follows only these resources, the labels of namespaces, and the Secrets that the resources
// name.
//
// A change opens or replaces only its own provider. A replaced provider still serves the calls
// that have begun for some seconds. A provider is closed if its Secret is deleted or may not be
// read any more.
//
// [Source.For] has the providers of one namespace, and reaches no provider of another one.
package providersource
