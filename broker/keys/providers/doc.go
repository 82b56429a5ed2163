// SPDX-License-Identifier: Apache-2.0

// Package providers has the configuration of key providers: which key managers there are, how
// to reach them, and with which credentials.
//
// A [Config] has no credentials. [Credentials] have the names and contents of the entries of a
// Kubernetes Secret, or of the files of a directory. [Types.Open] connects a provider.
//
// The packages of the key managers implement the types. A program lists in [Types] those that
// it links, because not all programs need the dependencies of all types.
//
// [Follow] opens the providers of a directory, and follows its changes:
//
//	Providers.yaml   a list of Config under the key Providers
//	<name>/          the credentials of the provider with this name, a file for each
package providers
