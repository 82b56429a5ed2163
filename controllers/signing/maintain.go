// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
)

// Reasons and the action of events.
const (
	// eventRotated means that there is a new signing key, because of the age of the previous key
	// or because somebody has asked for it.
	eventRotated = "SigningKeyRotated"
	// eventReplaced means that a signing key was made because the Secret had none that can be used. Brokers that trust no key of the Secret refuse new sets.
	eventReplaced = "SigningKeyReplaced"
	// eventRemoved means that retired signing keys were removed, because no running pod depends
	// on them.
	eventRemoved = "SigningKeyRemoved"
	// eventProblem means that the Secret has keys that cannot be used.
	eventProblem = "SigningKeysUnusable"

	actionRotate = "RotateSigningKeys"
)

// maintain removes and rotates keys if that is due, in one write, and returns the time until the
// next call. It removes keys first, because keys that no pod depends on must not take the room of
// a new key.
func (k *Keys) maintain(ctx context.Context) (time.Duration, error) {
	var secret corev1.Secret
	if err := k.client.Get(ctx, k.name(), &secret); err != nil {
		return 0, fmt.Errorf("read the signing keys in the Secret %s: %w", k.name(), err)
	}
	found, err := readSecret(&secret)
	if err != nil {
		return 0, err // refresh has reported it
	}
	now := k.options.Clock.Now()
	age := now.Sub(found.current.since)
	_, asked := secret.Annotations[RotateAnnotation]
	due := asked || age >= k.options.Lifetime

	next, removed := found, []string(nil)
	if len(found.retired) > 0 {
		trusts, err := k.trusts(ctx)
		if err != nil {
			return 0, err
		}
		next, removed = found.prune(trusts, now)
	}
	if due {
		if next, err = next.rotate(now); err != nil {
			k.reportOnce(&secret, err.Error())
			return 0, err
		}
	}
	if due || len(removed) > 0 {
		if err := k.update(ctx, &secret, next); err != nil {
			return 0, err
		}
		if due {
			k.rotated(&secret, found, next, asked)
		}
		if len(removed) > 0 {
			k.removed(&secret, removed)
		}
		registerRing(next)
		k.take(ctx, next)
	}
	if due || len(found.retired) > 0 {
		return lookInterval, nil
	}
	return max(time.Second, min(lookInterval, k.options.Lifetime-age)), nil
}

// rotated reports a new key that was made because of the age of the previous key, or because
// somebody asked.
func (k *Keys) rotated(secret *corev1.Secret, before, now Ring, asked bool) {
	rotations.Inc()
	k.log.Info("rotated the signing keys", "current", now.current.id, "retired", before.current.id, "asked", asked)
	reason := "the key was as old as --signing-key-lifetime allows"
	if asked {
		reason = "somebody asked for it by the annotation " + RotateAnnotation + " of the Secret"
	}
	k.options.Audit.AddEvent(keyEvent("rotated", now.current.id).Text("key.id.before", before.current.id).Text("reason", reason))
	k.report(secret, corev1.EventTypeNormal, eventRotated,
		fmt.Sprintf("The signing key %s is current. The one before, %s, goes on signing for running pods that trust it.", now.current.id, before.current.id))
}

// removed reports that retired keys were removed.
func (k *Keys) removed(secret *corev1.Secret, ids []string) {
	for _, id := range ids {
		k.options.Audit.AddEvent(keyEvent("removed", id).Text("reason", "no running pod depends on it"))
	}
	k.log.Info("removed retired signing keys that no running pod depends on", "keys", ids)
	k.report(secret, corev1.EventTypeNormal, eventRemoved,
		fmt.Sprintf("Removed the retired signing keys %s: no running pod depends on them.", strings.Join(ids, ", ")))
}

// trusts returns the ids of the keys that each running broker trusts.
func (k *Keys) trusts(ctx context.Context) ([][]string, error) {
	var pods corev1.PodList
	if err := k.options.Pods.List(ctx, &pods); err != nil {
		return nil, fmt.Errorf("list the pods that may depend on a retired signing key: %w", err)
	}
	var trusts [][]string
	for i := range pods.Items {
		if ids := TrustedBy(&pods.Items[i]); len(ids) > 0 {
			trusts = append(trusts, ids)
		}
	}
	return trusts, nil
}

// replaced reports a new key that was made because the previous key is gone.
func (k *Keys) replaced(secret *corev1.Secret, r Ring, why string) {
	k.options.Audit.AddEvent(keyEvent("replaced", r.current.id).Text("reason", why))
	k.report(secret, corev1.EventTypeWarning, eventReplaced,
		fmt.Sprintf("The signing key %s was made, because %s. Brokers that trust neither it nor a retired key refuse new sets until their workloads are restarted.", r.current.id, why))
}

// keyEvent returns the audit record of an event about a key.
func keyEvent(result, id string) *audit.Event {
	return audit.NewEvent("signing-key").Text("result", result).Text("key.id", id)
}

func (k *Keys) report(secret *corev1.Secret, kind, reason, note string) {
	if k.options.Events != nil {
		k.options.Events.Eventf(secret, nil, kind, reason, actionRotate, "%s", note)
	}
}

// reportOnce reports a problem unless it is the last one reported.
func (k *Keys) reportOnce(secret *corev1.Secret, problem string) {
	k.mu.Lock()
	before := k.reported
	k.reported = problem
	k.mu.Unlock()
	if before != problem {
		k.report(secret, corev1.EventTypeWarning, eventProblem, problem)
	}
}
