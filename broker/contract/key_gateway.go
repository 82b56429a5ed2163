// SPDX-License-Identifier: Apache-2.0

package contract

import "net/url"

// The pods of the key gateway and of the key access service, in the operator's namespace.
const (
	// ComponentLabel is the label by which the operator finds them, and KeyGatewayComponent and
	// KeyAccessComponent are its values.
	ComponentLabel      = "app.kubernetes.io/component"
	KeyGatewayComponent = "key-gateway"
	KeyAccessComponent  = "key-access"

	// KeyGatewayStatusPortName is the name of their status port, and DefaultKeyGatewayStatusPort
	// its number if a pod has no port of this name.
	KeyGatewayStatusPortName    = "status"
	DefaultKeyGatewayStatusPort = 8081

	// KeyProvidersPath is the path on the status port of the state of key providers, and of the
	// policies and peers of a key access service.
	KeyProvidersPath = "/keyproviders"
)

// BrokerSigner is the name of the signer from which the kubelet requests the certificates of
// brokers for the key gateway.
const BrokerSigner = "cryptobroker.io/broker"

// BrokerURI returns the only name in the certificate of a pod's broker:
// crypto-broker://<namespace>/<name of the pod>/<UID of the pod>.
func BrokerURI(namespace, pod, uid string) *url.URL {
	return &url.URL{Scheme: "crypto-broker", Host: namespace, Path: "/" + pod + "/" + uid}
}
