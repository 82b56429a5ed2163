// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
)

const (
	// logBytes is the number of bytes of the end of each replica's log in the archive.
	logBytes = 4 << 20
	// logLines is the number of lines of it.
	logLines = 20000
	// shortestHidden is the number of bytes from which on values are hidden in logs. Shorter ones, such
	// as "true", are parts of other words.
	shortestHidden = 6
)

// logs adds the ends of the operator's logs. The operator logs no keys. But it quotes an argument that it
// refuses, and a library may quote a variable that it cannot read.
func (c *Collector) logs(ctx context.Context, o installation.Operator, a *archive) error {
	if o.Deployment == nil {
		return nil
	}
	pods, err := c.Client.CoreV1().Pods(o.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(o.Deployment.Spec.Selector)})
	if err != nil {
		return a.without("the operator's pods", err)
	}
	for i := range pods.Items {
		if err := c.log(ctx, &pods.Items[i], a); err != nil {
			return err
		}
	}
	return nil
}

func (c *Collector) log(ctx context.Context, pod *corev1.Pod, a *archive) error {
	// LimitBytes would keep the first bytes of these lines, and the last ones say what happened.
	stream, err := c.Client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: operatorContainer, TailLines: ptr.To[int64](logLines), Timestamps: true,
	}).Stream(ctx)
	if err != nil {
		return a.without("the log of pod "+pod.Name, err)
	}
	text, err := end(stream, logBytes)
	_ = stream.Close() // it was only read
	if err != nil {
		return a.without("the log of pod "+pod.Name, err)
	}
	return a.text(path.Join("operator/logs", pod.Name+".log"), redact(string(text), pod.Spec.Containers))
}

// end returns the last whole lines of a log, of at most limit bytes together.
func end(log io.Reader, limit int) ([]byte, error) {
	var kept []byte
	for next, cut := make([]byte, limit), false; ; {
		n, err := io.ReadFull(log, next)
		if more := len(kept) + n - limit; more > 0 {
			kept, cut = kept[more:], true
		}
		kept = append(kept, next[:n]...)
		switch {
		case err == nil:
			continue
		case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fmt.Errorf("read the log: %w", err)
		case cut:
			_, kept, _ = bytes.Cut(kept, []byte("\n"))
		}
		return kept, nil
	}
}

// redact returns the log of a pod of the operator without the values of its variables, and without
// the arguments that may have a secret.
func redact(log string, containers []corev1.Container) string {
	instead := map[string]string{}
	hide := func(value, note string) {
		// A line in JSON quotes a message, which may quote the value.
		for range 3 {
			if len(value) >= shortestHidden {
				instead[value] = note
			}
			quoted := strconv.Quote(value)
			value = quoted[1 : len(quoted)-1]
		}
	}
	for i := range containers {
		if containers[i].Name != operatorContainer {
			continue
		}
		for _, variable := range containers[i].Env {
			hide(variable.Value, "(the value of "+variable.Name+" was left out)")
		}
		_, values := reduceArguments(containers[i].Args)
		for _, value := range values {
			hide(value, "(an argument was left out)")
		}
	}
	var pairs []string
	// A value may be part of another one.
	for _, value := range slices.SortedFunc(maps.Keys(instead), func(a, b string) int { return cmp.Compare(len(b), len(a)) }) {
		pairs = append(pairs, value, instead[value])
	}
	return strings.NewReplacer(pairs...).Replace(log)
}
