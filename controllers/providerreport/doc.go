// SPDX-License-Identifier: Apache-2.0

// Package providerreport has the document with which a key gateway tells the operator of its key
// providers. The gateway serves it on its status port, which every pod may reach. So it contains
// no name of a namespace, provider, Secret or server. A provider has the UID of its resource, and
// an endpoint has its index in the list of endpoints.
package providerreport
