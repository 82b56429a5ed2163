// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// holdName is the name of the admission policy that keeps the operator from a step. probeName is the name of a ConfigMap that the
// policy refuses, too. It shows when the API server begins and ceases to apply the policy.
const (
	holdName  = "faults-hold"
	probeName = "faults-probe"
)

// step is a write of the operator on the way of a change.
type step struct {
	group, version, resource string
	// which is a CEL expression that selects the writes that are refused.
	which func(*trial) string
	// reached returns an error until all before this step is done.
	reached func(context.Context, *trial, *corev1.ConfigMap) error
}

var (
	writingTheSet = step{"", "v1", "configmaps",
		func(*trial) string { return fmt.Sprintf("object.metadata.name == %q", v1alpha1.ProfilesConfigMap) },
		func(ctx context.Context, t *trial, before *corev1.ConfigMap) error {
			now, err := t.set(ctx)
			if err == nil && now.ResourceVersion != before.ResourceVersion {
				err = fmt.Errorf("the ConfigMap was written, expected that the policy refuses it")
			}
			return err
		}}
	annotatingPods    = step{"", "v1", "pods/status", func(*trial) string { return "true" }, setWritten}
	annotatingAllPods = step{"", "v1", "pods/status",
		func(t *trial) string { return fmt.Sprintf("object.metadata.name != %q", t.pods[0].Name) },
		func(ctx context.Context, t *trial, before *corev1.ConfigMap) error {
			pod := &corev1.Pod{}
			if err := t.Client.Get(ctx, client.ObjectKeyFromObject(&t.pods[0]), pod); err != nil {
				return err
			}
			if pod.Annotations[contract.ProfilesDigestAnnotation] == t.pods[0].Annotations[contract.ProfilesDigestAnnotation] {
				return fmt.Errorf("no pod has the annotation")
			}
			return nil
		}}
	writingStatuses = step{v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, "cryptoprofiles/status",
		func(*trial) string { return "true" },
		func(ctx context.Context, t *trial, _ *corev1.ConfigMap) error {
			_, err := t.served(ctx)
			return err
		}}
)

func setWritten(ctx context.Context, t *trial, before *corev1.ConfigMap) error {
	now, err := t.set(ctx)
	if err == nil && now.ResourceVersion == before.ResourceVersion {
		err = fmt.Errorf("the ConfigMap is as it was")
	}
	return err
}

// set returns the ConfigMap with the profiles of the namespace.
func (t *trial) set(ctx context.Context) (*corev1.ConfigMap, error) {
	return t.Clientset.CoreV1().ConfigMaps(namespace).Get(ctx, v1alpha1.ProfilesConfigMap, metav1.GetOptions{})
}

// killedBefore returns a fault that keeps the operator from a step of the propagation, by an
// admission policy, and kills the leader there.
func killedBefore(at step) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		before, err := t.set(ctx)
		if err != nil {
			return err
		}
		if err := t.refuseStep(ctx, at); err != nil {
			return err
		}
		leader, err := t.leader(ctx)
		if err != nil {
			return err
		}
		t.changed(ctx)
		if err := runner.Eventually(ctx, 30*time.Second, "the operator is at the step", func(ctx context.Context) error {
			return at.reached(ctx, t, before)
		}); err != nil {
			return err
		}
		if err := pause(ctx, time.Second); err != nil { // the operator tries the step during this time
			return err
		}
		if err := at.reached(ctx, t, before); err != nil {
			return err
		}
		t.began = time.Now()
		if err := kill(leader); err != nil {
			return err
		}
		t.causeEnded()
		return t.endFault(ctx)
	}
}

// refuseStep makes the API server refuse a step to the operator until endFault is called.
func (t *trial) refuseStep(ctx context.Context, at step) error {
	operator := "system:serviceaccount:" + environment.Namespace + ":" + environment.Release
	which := fmt.Sprintf("object.metadata.name == %q || (request.userInfo.username == %q && request.resource.resource == %q && (%s))",
		probeName, operator, strings.TrimSuffix(at.resource, "/status"), at.which(t))
	every := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	rule := func(group, version, resource string) admissionregistrationv1.NamedRuleWithOperations {
		return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: every,
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
		}}
	}
	here := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: holdName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: here,
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
					rule(at.group, at.version, at.resource), rule("", "v1", "configmaps")},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "step", Expression: which}},
			Validations:     []admissionregistrationv1.Validation{{Expression: "false", Message: "held by " + holdName}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: holdName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: holdName,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}},
	}
	t.undo(func(ctx context.Context) error {
		for _, object := range []client.Object{binding, policy} {
			if err := t.Client.Delete(ctx, object); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		return runner.Eventually(ctx, 30*time.Second, "the API server applies the policy no more", func(ctx context.Context) error {
			return t.probePolicy(ctx)
		})
	})
	for _, object := range []client.Object{policy, binding} {
		if err := t.Client.Create(ctx, object); err != nil {
			return err
		}
	}
	return runner.Eventually(ctx, 30*time.Second, "the API server applies the policy", func(ctx context.Context) error {
		err := t.probePolicy(ctx)
		if err == nil {
			return fmt.Errorf("it does not")
		}
		if !strings.Contains(err.Error(), holdName) {
			return err
		}
		return nil
	})
}

// probePolicy returns the error that the policy of hold causes.
func (t *trial) probePolicy(ctx context.Context) error {
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: probeName}}
	return t.Client.Create(ctx, probe, client.DryRunAll)
}

// leader returns the process of the operator's leader.
func (t *trial) leader(ctx context.Context) (int, error) {
	lease, err := t.Clientset.CoordinationV1().Leases(environment.Namespace).Get(ctx, v1alpha1.LeaderElectionLease, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	if lease.Spec.HolderIdentity == nil {
		return 0, fmt.Errorf("the operator has no leader")
	}
	pods, err := t.OperatorPods(ctx)
	if err != nil {
		return 0, err
	}
	for i := range pods {
		if strings.HasPrefix(*lease.Spec.HolderIdentity, pods[i].Name+"_") {
			return t.containerProcess(ctx, &pods[i], pods[i].Spec.Containers[0].Name)
		}
	}
	return 0, fmt.Errorf("the leader %s is none of the pods of the operator", *lease.Spec.HolderIdentity)
}

// operatorProcesses returns the processes of all replicas.
func (t *trial) operatorProcesses(ctx context.Context) ([]int, error) {
	pods, err := t.OperatorPods(ctx)
	if err != nil {
		return nil, err
	}
	var processes []int
	for i := range pods {
		process, err := t.containerProcess(ctx, &pods[i], pods[i].Spec.Containers[0].Name)
		if err != nil {
			return nil, err
		}
		processes = append(processes, process)
	}
	return processes, nil
}
