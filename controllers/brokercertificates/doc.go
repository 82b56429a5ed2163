// SPDX-License-Identifier: Apache-2.0

// Package brokercertificates signs the certificates that brokers have for the key gateway.
//
// For a pod with such a volume, the kubelet makes a key and a PodCertificateRequest, which names
// the pod. The leader signs it as the signer [contract.BrokerSigner], with the certificate
// authority of the key gateway. The certificate has one name, [contract.BrokerURI] of the pod.
//
// The package does not check that the pod exists and that its kubelet asks. The API server checks
// that for all objects of a kubelet (admission plugin NodeRestriction), and by default nobody
// else may create requests. A certificate alone gives no access: the gateway compares it with the
// pod of the token, which the API server reviews.
package brokercertificates

// The rights for it are in the chart, and only with keyGateway.brokerCertificates: get, list and watch of
// podcertificaterequests, update of podcertificaterequests/status, and sign for the one signer.
