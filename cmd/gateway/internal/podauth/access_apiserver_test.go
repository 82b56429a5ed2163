// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package podauth

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/service"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

var kube kubernetes.Interface

func TestMain(m *testing.M) {
	os.Exit(apiserver.Run(m, func(admin *rest.Config) (err error) {
		kube, err = kubernetes.NewForConfig(admin)
		return err
	}))
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// tenant is a namespace with a pod.
type tenant struct {
	namespace *corev1.Namespace
	pod       *corev1.Pod
}

func newTenant(t *testing.T) *tenant {
	t.Helper()
	created := metav1.CreateOptions{}
	ns := must[*corev1.Namespace](t)(kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "tenant-"}}, created))
	must[*corev1.ServiceAccount](t)(kube.CoreV1().ServiceAccounts(ns.Name).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "app"}}, created))
	pod := must[*corev1.Pod](t)(kube.CoreV1().Pods(ns.Name).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{ServiceAccountName: "app", Containers: []corev1.Container{{Name: "app", Image: "example.com/app"}}},
	}, created))
	return &tenant{ns, pod}
}

// token returns a token of the API server for the audience, bound to the pod unless it is nil.
func (n *tenant) token(t *testing.T, audience string, pod *corev1.Pod) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	}
	return must[*authenticationv1.TokenRequest](t)(kube.CoreV1().ServiceAccounts(n.namespace.Name).CreateToken(t.Context(), "app", request, metav1.CreateOptions{})).Status.Token
}

// publish writes a set of profiles as the operator does.
func (n *tenant) publish(t *testing.T, ring signing.Ring, cluster types.UID, revision int64, file string) {
	t.Helper()
	signature := must[[]byte](t)(ring.Sign(signed.Statement{
		Format: signed.Format, Audience: signing.Audience(cluster, n.namespace), Revision: revision, Time: time.Now().UTC(), Digest: signed.Digest([]byte(file)),
	}))
	n.store(t, file, string(signature))
}

func (n *tenant) store(t *testing.T, file, signature string) {
	t.Helper()
	maps := kube.CoreV1().ConfigMaps(n.namespace.Name)
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ProfilesConfigMap}, Data: map[string]string{profile.FileName: file, signed.FileName: signature},
	}
	if _, err := maps.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		must[*corev1.ConfigMap](t)(maps.Create(t.Context(), object, metav1.CreateOptions{}))
	}
}

const set = `
- Name: Orders
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: kms/orders}]}}
- Name: Any
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: "*"}]}}
- Name: Own
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random}}
- Name: Data
  API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: kms/kek}]}}
- Name: Receipts
  API: {SignData: {SignAlg: ed25519, KeyIds: [{Id: kms/receipts}]}}
`

// gatewayOf returns an access that trusts the keys of a ring.
func gatewayOf(t *testing.T, ring signing.Ring) *Access {
	t.Helper()
	return must[*Access](t)(New(t.Context(), kube, Options{
		Audience: Audience, Keys: func(context.Context) ([]ed25519.PublicKey, error) { return ring.Known(), nil },
	}))
}

func newRing(t *testing.T) signing.Ring {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signing.NewRing(private)
}

func TestOnlyATokenOfARunningPodForTheGatewayIsAccepted(t *testing.T) {
	a, n := gatewayOf(t, newRing(t)), newTenant(t)
	good := n.token(t, Audience, n.pod)
	here := locate(t, n.pod, "192.0.2.1")
	pod, err := a.Authenticate(t.Context(), good, here)
	if want := (service.Pod{Namespace: n.namespace.Name, Name: "web", UID: string(n.pod.UID), ServiceAccount: "app"}); err != nil || pod != want {
		t.Fatalf("got %+v, error %v, want %+v", pod, err, want)
	}
	gone := must[*corev1.Pod](t)(kube.CoreV1().Pods(n.namespace.Name).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "gone"},
		Spec:       corev1.PodSpec{ServiceAccountName: "app", Containers: []corev1.Container{{Name: "app", Image: "example.com/app"}}},
	}, metav1.CreateOptions{}))
	ofGone := n.token(t, Audience, gone)
	now := int64(0)
	if err := kube.CoreV1().Pods(n.namespace.Name).Delete(t.Context(), "gone", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good, ".")
	for sentence, token := range map[string]string{
		"a token for the API server":            n.token(t, "https://kubernetes.default.svc.cluster.local", n.pod),
		"a token for another service":           n.token(t, "vault", n.pod),
		"a token of no pod":                     n.token(t, Audience, nil),
		"a token of a pod that was deleted":     ofGone,
		"a token whose signature is of another": parts[0] + "." + parts[1] + "." + strings.Split(ofGone, ".")[2],
		"a token without signature":             parts[0] + "." + parts[1] + ".",
		"a text":                                "hunter2",
	} {
		if _, err := a.Authenticate(t.Context(), token, here); !errors.Is(err, service.ErrToken) {
			t.Errorf("%s: %v, want ErrToken", sentence, err)
		}
	}
	if _, err := claimsOf(good, Audience, time.Now().Add(2*time.Hour)); !errors.Is(err, service.ErrToken) {
		t.Errorf("a token that has expired: %v, want ErrToken", err)
	}
}

// locate gives a pod addresses, as its kubelet does, and returns the first one.
func locate(t *testing.T, pod *corev1.Pod, addresses ...string) netip.Addr {
	t.Helper()
	pod = pod.DeepCopy()
	pod.ResourceVersion, pod.Status.PodIPs = "", nil
	for _, address := range addresses {
		pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: address})
	}
	pod.Status.PodIP = addresses[0]
	must[*corev1.Pod](t)(kube.CoreV1().Pods(pod.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}))
	return netip.MustParseAddr(addresses[0])
}

func TestATokenCountsOnlyFromItsPod(t *testing.T) {
	a, n := gatewayOf(t, newRing(t)), newTenant(t)
	stolen := n.token(t, Audience, n.pod)
	authenticate := func(from string) error {
		_, err := a.Authenticate(t.Context(), stolen, netip.MustParseAddr(from))
		return err
	}
	if err := authenticate("192.0.2.1"); err == nil || errors.Is(err, service.ErrToken) {
		t.Errorf("a pod that has no address yet: %v, want an error that is not final", err)
	}
	locate(t, n.pod, "192.0.2.1", "2001:db8::1")
	for _, own := range []string{"192.0.2.1", "2001:db8::1"} {
		if err := authenticate(own); err != nil {
			t.Errorf("from the pod's address %s: %v", own, err)
		}
	}
	for range 2 { // the cached state of the pod does not help
		if err := authenticate("192.0.2.2"); !errors.Is(err, service.ErrToken) {
			t.Errorf("from another pod's address: %v, want ErrToken", err)
		}
	}
	locate(t, n.pod, "192.0.2.3")
	if err := authenticate("192.0.2.3"); err != nil {
		t.Errorf("from the pod's new address after a restart of its node: %v", err)
	}
	if err := authenticate("192.0.2.1"); !errors.Is(err, service.ErrToken) {
		t.Errorf("from an address that the pod had: %v, want ErrToken", err)
	}

	onNode := must[*corev1.Pod](t)(kube.CoreV1().Pods(n.namespace.Name).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "on-node"},
		Spec:       corev1.PodSpec{ServiceAccountName: "app", HostNetwork: true, Containers: []corev1.Container{{Name: "app", Image: "example.com/app"}}},
	}, metav1.CreateOptions{}))
	locate(t, onNode, "192.0.2.9")
	ofNode := n.token(t, Audience, onNode)
	for _, allowed := range []bool{false, true, false} {
		a.tokens.options.HostNetworkPods = allowed
		clear(a.tokens.known) // as if the gateway had started with another value
		for _, from := range []string{"192.0.2.9", "192.0.2.10"} {
			if _, err := a.Authenticate(t.Context(), ofNode, netip.MustParseAddr(from)); allowed != (err == nil) || !allowed && !errors.Is(err, service.ErrToken) {
				t.Errorf("a pod on the network of its node, from %s: %v, allowed: %t", from, err, allowed)
			}
		}
	}
	a.tokens.options.AnyAddress = true
	if err := authenticate("192.0.2.2"); err != nil {
		t.Errorf("in a network that replaces addresses: %v", err)
	}
}

func TestAPodUsesWhatTheSignedSetOfItsNamespaceLists(t *testing.T) {
	ring := newRing(t)
	a, n, other, empty := gatewayOf(t, ring), newTenant(t), newTenant(t), newTenant(t)
	n.publish(t, ring, a.profiles.cluster, 3, set)
	other.publish(t, ring, a.profiles.cluster, 1, strings.ReplaceAll(set, "kms/orders", "kms/theirs"))
	use := func(n *tenant, name string, operation profile.Operation, id string) error {
		return a.Authorize(t.Context(), service.Pod{Namespace: n.namespace.Name, Name: "web", UID: string(n.pod.UID)}, service.Use{Profile: name, Operation: operation, KeyID: id})
	}
	for sentence, test := range map[string]struct {
		err  error
		want string
	}{
		"a listed key":                     {use(n, "Orders", profile.OpEncryptData, "kms/orders"), ""},
		"a listed key, the inverse":        {use(n, "Orders", profile.OpDecryptData, "kms/orders"), ""},
		"a listed key that wraps":          {use(n, "Data", profile.OpUnwrapKey, "kms/kek"), ""},
		"a key that is for data alone":     {use(n, "Orders", profile.OpUnwrapKey, "kms/orders"), `the profile "Orders" does not offer UnwrapKey`},
		"a key that is not listed":         {use(n, "Orders", profile.OpEncryptData, "kms/other"), `the profile "Orders" does not list the key "kms/other" for EncryptData`},
		"a key of another profile":         {use(n, "Receipts", profile.OpSignData, "kms/orders"), `the profile "Receipts" does not list the key "kms/orders" for SignData`},
		"a profile that does not exist":    {use(n, "Admin", profile.OpEncryptData, "kms/orders"), "has no profile \"Admin\""},
		"an operation that is not offered": {use(n, "Orders", profile.OpSignData, "kms/orders"), `the profile "Orders" does not offer SignData`},
		"an operation without keys":        {use(n, "Orders", profile.OpHashData, "kms/orders"), "does not offer HashData"},
		"a list of every key":              {use(n, "Any", profile.OpEncryptData, "kms/orders"), "stands for the broker's own keys"},
		"the star as a key":                {use(n, "Any", profile.OpEncryptData, "*"), "stands for the broker's own keys"},
		"a profile without a list":         {use(n, "Own", profile.OpEncryptData, "kms/orders"), "does not list the key"},
		"a key of another namespace":       {use(other, "Orders", profile.OpEncryptData, "kms/orders"), "does not list the key"},
		"a namespace without profiles":     {use(empty, "Orders", profile.OpEncryptData, "kms/orders"), "has no profiles"},
	} {
		var refused *service.RefusedError
		switch {
		case test.want == "" && test.err != nil:
			t.Errorf("%s: %v", sentence, test.err)
		case test.want != "" && (!errors.As(test.err, &refused) || !strings.Contains(refused.Reason, test.want)):
			t.Errorf("%s: got %v, want a refusal with %q", sentence, test.err, test.want)
		}
	}
}

func TestASetThatTheOperatorDidNotSignForTheNamespaceAllowsNothing(t *testing.T) {
	ring := newRing(t)
	for sentence, write := range map[string]func(t *testing.T, n *tenant, cluster types.UID){
		"without signature":          func(t *testing.T, n *tenant, _ types.UID) { n.store(t, set, "") },
		"signed by another key":      func(t *testing.T, n *tenant, cluster types.UID) { n.publish(t, newRing(t), cluster, 1, set) },
		"signed for another cluster": func(t *testing.T, n *tenant, _ types.UID) { n.publish(t, ring, "other", 1, set) },
		"changed after it was signed": func(t *testing.T, n *tenant, cluster types.UID) {
			n.publish(t, ring, cluster, 1, set)
			stored := must[*corev1.ConfigMap](t)(kube.CoreV1().ConfigMaps(n.namespace.Name).Get(t.Context(), v1alpha1.ProfilesConfigMap, metav1.GetOptions{}))
			n.store(t, strings.ReplaceAll(set, "kms/orders", "kms/theirs"), stored.Data[signed.FileName])
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			a, n := gatewayOf(t, ring), newTenant(t)
			write(t, n, a.profiles.cluster)
			for _, id := range []string{"kms/orders", "kms/theirs"} {
				err := a.Authorize(t.Context(), service.Pod{Namespace: n.namespace.Name}, service.Use{Profile: "Orders", Operation: profile.OpEncryptData, KeyID: id})
				if err == nil {
					t.Errorf("%s is allowed", id)
				}
			}
		})
	}
	t.Run("older than one that the gateway has seen", func(t *testing.T) {
		a, n := gatewayOf(t, ring), newTenant(t)
		n.publish(t, ring, a.profiles.cluster, 2, strings.ReplaceAll(set, "kms/orders", "kms/newer"))
		use := service.Use{Profile: "Orders", Operation: profile.OpEncryptData, KeyID: "kms/newer"}
		pod := service.Pod{Namespace: n.namespace.Name}
		if err := a.Authorize(t.Context(), pod, use); err != nil {
			t.Fatal(err)
		}
		n.publish(t, ring, a.profiles.cluster, 1, set)
		a.profiles.of(n.namespace.Name).read = time.Time{} // as after ten seconds
		use.KeyID = "kms/orders"
		if err := a.Authorize(t.Context(), pod, use); err == nil {
			t.Error("a key of the older set is allowed")
		}
	})
}

func TestARolloutCountsForThePodsThatItHasReached(t *testing.T) {
	ring := newRing(t)
	a, n := gatewayOf(t, ring), newTenant(t)
	const section = "API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: kms/%s}]}}"
	n.publish(t, ring, a.profiles.cluster, 1, fmt.Sprintf("FormatVersion: 2\nProfiles:\n- Name: Orders\n  "+section+"\n- Name: Orders\n  Rollout: {Below: %d, Digest: d}\n  "+section+"\n",
		"old", int64(profile.RolloutPlaces/2), "new"))
	reached, later := "", ""
	for i := 0; reached == "" || later == ""; i++ {
		if uid := fmt.Sprintf("uid-%d", i); profile.RolloutPlace(uid, "Orders") < profile.RolloutPlaces/2 {
			reached = uid
		} else {
			later = uid
		}
	}
	for _, test := range []struct {
		uid, id string
		allowed bool
	}{{reached, "kms/new", true}, {reached, "kms/old", false}, {later, "kms/new", false}, {later, "kms/old", true}} {
		err := a.Authorize(t.Context(), service.Pod{Namespace: n.namespace.Name, UID: test.uid}, service.Use{Profile: "Orders", Operation: profile.OpEncryptData, KeyID: test.id})
		if (err == nil) != test.allowed {
			t.Errorf("the pod %s and the key %s: %v, want allowed %t", test.uid, test.id, err, test.allowed)
		}
	}
}
