// SPDX-License-Identifier: Apache-2.0

// Package providers has the configuration of key providers: the key managers, their addresses and
// settings, and their credentials.
//
// A [Config] has no credentials. [Credentials] have the names and contents of the entries of a
// Kubernetes Secret, or of the files of a directory. [Types.Open] connects a provider.
//
// The packages of the key managers implement the types. A program lists in [Types] the types that
// it links, because not every program needs the dependencies of all types.
//
// [Follow] opens the providers of a directory, and follows its changes:
//
//	Providers.yaml   a list of Config under the key Providers
//	<name>/          the credentials of the provider with this name, a file for each
package providers
