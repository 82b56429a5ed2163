// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

// operatorGone takes both replicas away. Meanwhile one profile is changed, which the API
// server refuses without the webhook, and another one is deleted, which it does not.
func operatorGone(ctx context.Context, t *trial) error {
	spare := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "spare"},
		Spec: workload.Hashing("Spare", "sha3-512")}
	if err := t.Client.Create(ctx, spare); err != nil {
		return err
	}
	if err := runner.Eventually(ctx, 30*time.Second, "the set has one more profile", func(ctx context.Context) error {
		return t.setHas(ctx, spare.Spec.ProfileName, true)
	}); err != nil {
		return err
	}
	t.began = time.Now()
	t.undo(func(ctx context.Context) error { return t.ScaleOperator(ctx, workload.Replicas) })
	if err := t.ScaleOperator(ctx, 0); err != nil {
		return err
	}
	t.change(ctx)
	if err := t.Client.Delete(ctx, spare); err != nil {
		return fmt.Errorf("delete a profile without the operator: %w", err)
	}
	if err := pause(ctx, 10*time.Second); err != nil {
		return err
	}
	t.causeEnded()
	if err := t.endFault(ctx); err != nil {
		return err
	}
	return runner.Eventually(ctx, time.Minute, "the set has no profile that was deleted without the operator", func(ctx context.Context) error {
		return t.setHas(ctx, spare.Spec.ProfileName, false)
	})
}

// setHas returns an error unless the set of the namespace has a profile, or does not have it, as wanted.
func (t *trial) setHas(ctx context.Context, name string, expected bool) error {
	set, err := t.set(ctx)
	if err != nil {
		return err
	}
	if found := strings.Contains(set.Data["Profiles.yaml"], name); found != expected {
		return fmt.Errorf("found the profile %s in the set: %v, expected %v", name, found, expected)
	}
	return nil
}

// networkCut drops all packets between the API server and the operator for half a minute.
func networkCut(ctx context.Context, t *trial) error {
	pods, err := t.OperatorPods(ctx)
	if err != nil {
		return err
	}
	port, err := t.webhookPort(ctx)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		for _, rule := range [][]string{
			{"INPUT", "-p", "tcp", "-s", pod.Status.PodIP, "--dport", "6443", "-j", "DROP"},
			{"OUTPUT", "-p", "tcp", "-d", pod.Status.PodIP, "--dport", strconv.Itoa(port), "-j", "DROP"},
		} {
			t.undo(func(ctx context.Context) error {
				_, err := t.Exec(ctx, append([]string{"iptables", "-w", "-D"}, rule...)...)
				return err
			})
			if _, err := t.Exec(ctx, append([]string{"iptables", "-w", "-I"}, rule...)...); err != nil {
				return err
			}
		}
	}
	t.change(ctx)
	if err := pause(ctx, 30*time.Second); err != nil {
		return err
	}
	return t.endFault(ctx)
}

// webhookPort returns the port on which replicas answer the API server.
func (t *trial) webhookPort(ctx context.Context) (int, error) {
	pods, err := t.OperatorPods(ctx)
	if err != nil || len(pods) == 0 {
		return 0, errors.Join(err, errors.New("find the port of the webhook"))
	}
	for _, each := range pods[0].Spec.Containers[0].Ports {
		if strings.Contains(each.Name, "webhook") {
			return int(each.ContainerPort), nil
		}
	}
	return 0, fmt.Errorf("the operator has no port for webhooks: %+v", pods[0].Spec.Containers[0].Ports)
}

// certificateExpired gives the replicas an authority that expires after some seconds, and
// with it the serving certificates that it signs.
func certificateExpired(ctx context.Context, t *trial) error {
	expires := time.Now().Add(20 * time.Second)
	certificate, key, err := shortAuthority(expires)
	if err != nil {
		return err
	}
	secrets := t.Clientset.CoreV1().Secrets(environment.Namespace)
	secret, err := secrets.Get(ctx, environment.Release+"-ca", metav1.GetOptions{})
	if err != nil {
		return err
	}
	secret.Data = map[string][]byte{"ca.crt": certificate, "ca.key": key}
	if _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return err
	}
	soon := func(served *x509.Certificate) error {
		if served.NotAfter.After(expires) {
			return fmt.Errorf("it serves a certificate that is valid until %s", served.NotAfter)
		}
		return nil
	}
	if err := runner.Eventually(ctx, 15*time.Second, "a replica serves a certificate that expires soon", func(ctx context.Context) error {
		return t.certificates(ctx, soon)
	}); err != nil {
		return err
	}
	if err := pause(ctx, time.Until(expires)); err != nil {
		return err
	}
	t.began = time.Now()
	t.change(ctx)
	t.causeEnded()
	if err := runner.Eventually(ctx, 2*time.Minute, "every replica serves a certificate that the API server accepts", t.trusted); err != nil {
		return err
	}
	t.note("Every replica served a certificate that the API server accepts %.1f s after the old one expired.", time.Since(t.ended).Seconds())
	return nil
}

// shortAuthority returns a certificate authority like the operator's, but with a shorter lifetime.
func shortAuthority(expires time.Time) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "crypto-broker-operator webhook authority"},
		NotBefore: time.Now().Add(-365 * 24 * time.Hour), NotAfter: expires,
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), err
}

// trusted returns an error unless an API server that connects again would accept the
// certificate of every replica.
func (t *trial) trusted(ctx context.Context) error {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := t.Client.Get(ctx, client.ObjectKey{Name: environment.Release}, configuration); err != nil {
		return err
	}
	bundle := configuration.Webhooks[0].ClientConfig.CABundle
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	return t.handshakes(ctx, &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots,
		ServerName: environment.Release + "-webhook." + environment.Namespace + ".svc"}, nil)
}

// certificates returns the certificates that the replicas serve.
func (t *trial) certificates(ctx context.Context, check func(*x509.Certificate) error) error {
	return t.handshakes(ctx, &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}, check)
}

// handshakes connects to the webhook of every replica.
func (t *trial) handshakes(ctx context.Context, config *tls.Config, check func(*x509.Certificate) error) error {
	pods, err := t.OperatorPods(ctx)
	if err != nil {
		return err
	}
	port, err := t.webhookPort(ctx)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 2 * time.Second}, Config: config}
		connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(port)))
		if err != nil {
			return fmt.Errorf("%s: %w", pod.Name, err)
		}
		state := connection.(*tls.Conn).ConnectionState()
		if err := connection.Close(); err != nil {
			return err
		}
		if check != nil {
			if err := check(state.PeerCertificates[0]); err != nil {
				return fmt.Errorf("%s: %w", pod.Name, err)
			}
		}
	}
	return nil
}

// setDeleted deletes the ConfigMap with the profiles, in spite of the policy that forbids it.
func setDeleted(ctx context.Context, t *trial) error {
	bindings := t.Clientset.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	name := environment.Release + "-profiles-configmap"
	binding, err := bindings.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	t.undo(func(ctx context.Context) error {
		again := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: binding.Labels, Annotations: binding.Annotations}, Spec: binding.Spec}
		if _, err := bindings.Create(ctx, again, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
	if err := bindings.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	before, err := t.set(ctx)
	if err != nil {
		return err
	}
	// The API server applies the policy for a moment longer.
	if err := runner.Eventually(ctx, 30*time.Second, "the ConfigMap can be deleted", func(ctx context.Context) error {
		return t.Clientset.CoreV1().ConfigMaps(namespace).Delete(ctx, v1alpha1.ProfilesConfigMap, metav1.DeleteOptions{})
	}); err != nil {
		return err
	}
	t.began = time.Now()
	t.causeEnded()
	t.change(ctx)
	if err := runner.Eventually(ctx, time.Minute, "the operator has made the ConfigMap again", func(ctx context.Context) error {
		now, err := t.set(ctx)
		if err == nil && now.UID == before.UID {
			err = errors.New("it is the old one")
		}
		return err
	}); err != nil {
		return err
	}
	t.note("The operator made the ConfigMap again after %.1f s.", time.Since(t.began).Seconds())
	return t.endFault(ctx)
}

// clockAhead moves the time of day of the node's processes forward by ten minutes, and has
// the operator make a new certificate authority meanwhile.
func clockAhead(ctx context.Context, t *trial) error {
	processes, err := t.operatorProcesses(ctx)
	if err != nil {
		return err
	}
	kubelet, err := t.partProcess("kubelet")
	if err != nil {
		return err
	}
	processes = append(processes, kubelet)
	for i := range t.pods {
		broker, err := t.brokerProcess(ctx, &t.pods[i])
		if err != nil {
			return err
		}
		processes = append(processes, broker)
	}
	for _, process := range processes {
		clock, err := shiftClock(ctx, process, 10*time.Minute)
		if clock != nil {
			t.undo(clock.restore)
		}
		if err != nil {
			return err
		}
	}
	secrets := t.Clientset.CoreV1().Secrets(environment.Namespace)
	authority := environment.Release + "-ca"
	before, err := secrets.Get(ctx, authority, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := secrets.Delete(ctx, authority, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := runner.Eventually(ctx, 30*time.Second, "the operator has made another certificate authority", func(ctx context.Context) error {
		now, err := secrets.Get(ctx, authority, metav1.GetOptions{})
		if err == nil && bytes.Equal(now.Data["ca.crt"], before.Data["ca.crt"]) {
			err = errors.New("it is the old one")
		}
		return err
	}); err != nil {
		return err
	}
	if err := runner.Eventually(ctx, 30*time.Second, "the API server accepts the certificates of the wrong time", t.trusted); err != nil {
		return err
	}
	t.changed(ctx)
	if err := runner.Eventually(ctx, time.Minute, "the change is served while the clock is wrong", func(ctx context.Context) error {
		_, err := t.served(ctx)
		return err
	}); err != nil {
		return err
	}
	if err := t.endFault(ctx); err != nil {
		return err
	}
	// Sets that were signed with the wrong time now have a time in the future.
	t.algorithm = t.nextAlgorithm()
	t.changed(ctx)
	return nil
}
