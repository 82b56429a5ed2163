// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

// Outdated returns a function that reports whether an injected pod has another broker than a new
// pod would get: another image, or a stamp with another template. The version in the stamp does
// not count, because two versions may make the same brokers. An image that the pod asked for does
// not count either. Access to the key gateway does not count, because it depends on the
// namespace. The template is rendered once for all pods.
func Outdated(t template.Template) func(*corev1.Pod) bool {
	withGateway := stampOf(t)
	t.KeyGateway = ""
	without := stampOf(t)
	return func(pod *corev1.Pod) bool {
		broker := injected.Broker(pod)
		if broker == nil {
			return false
		}
		if _, asked := pod.Annotations[contract.ImageAnnotation]; !asked && broker.Image != t.Image {
			return true
		}
		stamp, stamped := pod.Annotations[contract.InjectedAnnotation]
		current := withGateway
		if _, gateway := digestsOf(stamp); gateway == "" {
			current = without
		}
		return stamped && !SameTemplate(stamp, current)
	}
}

// stampOf returns the value of the annotation with the operator and the template that injected a
// pod: "<version>/<12 hex digits>". The digits change only if the parts of the template in pods
// change. The stamp of a pod that can call the key gateway ends with "-" and 12 more digits, for
// its additional parts.
func stampOf(t template.Template) string {
	gateway := t.KeyGateway
	t.NamespaceUserIDs, t.Seal, t.KeyGateway = false, template.Seal{}, ""
	typical := rendering{template: t, options: podOptions{socketDir: contract.SocketDir}, callers: []string{"app"}, statusPort: true, snapshot: true}
	socket, profiles := typical.volumes()
	stamp := t.Version + "/" + digestOf(typical.container(), typical.mount("app"), socket, profiles, t.SocketGroup)
	if gateway != "" {
		stamp += gatewayMark + digestOf(keyGatewayArguments(gateway, t.BrokerCertificates), keyGatewayMount(), keyGatewayVolume(t.BrokerCertificates))
	}
	return stamp
}

// digestOf returns 12 hexadecimal digits.
func digestOf(parts ...any) string {
	// These types always marshal without an error, and to the same bytes.
	shape, err := json.Marshal(parts)
	if err != nil {
		panic(fmt.Sprintf("what is put into pods cannot be written as JSON: %v", err))
	}
	sum := sha256.Sum256(shape)
	return hex.EncodeToString(sum[:6])
}

// gatewayMark is in front of the second digest of a stamp.
const gatewayMark = "-"

// SameTemplate reports whether a pod with a stamp has the same broker as a new pod, whose stamp
// is current. A broker that can call the key gateway but need not counts as the same.
func SameTemplate(stamp, current string) bool {
	template, gateway := digestsOf(stamp)
	currentTemplate, currentGateway := digestsOf(current)
	return template == currentTemplate && (currentGateway == "" || gateway == currentGateway)
}

// digestsOf returns the digests of a stamp. The second one is empty for a pod that cannot
// call the key gateway.
func digestsOf(stamp string) (template, gateway string) {
	template, gateway, _ = strings.Cut(stamp[strings.LastIndex(stamp, "/")+1:], gatewayMark)
	return template, gateway
}
