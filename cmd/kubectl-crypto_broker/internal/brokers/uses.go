// SPDX-License-Identifier: Apache-2.0

package brokers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
)

// maxUses is the size in bytes up to which an answer about uses is read.
const maxUses = 1 << 20

// Uses asks a pod's broker through the API server's proxy what the calls that it has served
// used. The error is a phrase for people.
func Uses(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) (telemetry.Uses, error) {
	port := contract.StatusPort(injected.Broker(pod).Args)
	if pod.Spec.HostNetwork || port == 0 {
		return telemetry.Uses{}, errors.New("the broker has no status port")
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	body, err := read(ctx, client, pod, port)
	switch {
	case apierrors.IsForbidden(err):
		return telemetry.Uses{}, errors.New("asking the broker needs the right to get pods/proxy")
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return telemetry.Uses{}, errors.New("the broker is too old to count what calls used: restart the workload after an upgrade")
	case err != nil:
		return telemetry.Uses{}, fmt.Errorf("the broker did not answer: %s", apierror.OneLine(err.Error()))
	}
	uses, err := telemetry.ReadUses(body)
	if err != nil || len(body) > maxUses {
		return telemetry.Uses{}, errors.New("the broker's answer is not the expected JSON")
	}
	return uses, nil
}

// read returns the first maxUses+1 bytes of an answer.
func read(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, port uint16) ([]byte, error) {
	stream, err := client.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, strconv.Itoa(int(port)), contract.UsesPath, nil).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(stream, maxUses+1))
}
