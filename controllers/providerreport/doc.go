// SPDX-License-Identifier: Apache-2.0

// Package providerreport has the document with which a key gateway tells the operator of its
// key providers. The gateway serves it on its status port, which every pod may reach. So it has
// no name of a namespace, provider, Secret or server: a provider has the UID of its resource, and
// an endpoint its place in the list of endpoints.
package providerreport
