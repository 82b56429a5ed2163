// SPDX-License-Identifier: Apache-2.0

// Package kmsfile has the key managers that released profile files name by KMS.Config: the name
// of a file with the address, the token and the mount of an OpenBao or Vault server.
//
//	<name>   address, token and mount, as YAML
//	ca.crt   the authorities of the servers, as PEM; without it, the authorities of the system
package kmsfile
