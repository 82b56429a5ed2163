// SPDX-License-Identifier: Apache-2.0

// Package keygateway makes the certificates and the list of trusted keys of key gateways, and
// tells the rest of the operator how brokers reach the gateways.
//
// For a Service S in the operator's namespace, the leader keeps three objects current:
//
//   - the Secret S-ca with a certificate authority, which nobody mounts;
//   - the Secret S-tls with a serving certificate of this authority for the names of S;
//   - the ConfigMap S with the operator's public signing keys (entry trusted-keys, one in a
//     line) and the authorities that brokers have to trust (entry ca.crt).
//
// Gateways mount the last two, and need no restart when they change. The leader writes an object
// again at once if somebody changes or deletes it.
//
// A successor of the authority is published a day before it signs. So brokers trust it
// before they see a certificate of it.
package keygateway

// The operator's rights for these objects are in the chart, and only with keyGateway.enabled: in its
// namespace get, list, watch and update, each for the one name; create for Secrets and ConfigMaps
// is a right that it has already.
