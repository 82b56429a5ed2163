// SPDX-License-Identifier: Apache-2.0

// Package rollouts asks the operator to continue the rollout of a profile, to complete it, or to
// abort it.
package rollouts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/effective"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

// Action is an action on a rollout.
type Action string

// The actions.
const (
	// Promote ends the current step, even after a failure.
	Promote Action = "promote"
	// PromoteFull gives all pods the new profile.
	PromoteFull Action = "promote-full"
	// Abort gives all pods the old profile again.
	Abort Action = "abort"
)

// ErrNone means that the profile has no active rollout.
var ErrNone = errors.New("it has no rollout in progress")

// IsActive reports whether a rollout is not over.
func IsActive(status *v1alpha1.RolloutStatus) bool {
	return status != nil && status.Phase != v1alpha1.RolloutComplete
}

// Seen is the state of a rollout that a user has seen.
type Seen struct {
	Attempt string
	Step    int32
}

// Ask requests an action on the rollout of a profile, and returns a sentence about its effect. If
// seen is not nil, and the rollout is now another one or at another step, Ask returns an error.
func Ask(ctx context.Context, client kubernetes.Interface, source downgrade.Source, action Action, seen *Seen) (then string, err error) {
	status, err := read(ctx, client, source)
	switch {
	case err != nil:
		return "", err
	case !IsActive(status):
		return "", ErrNone
	case seen != nil && *seen != Seen{status.Attempt, status.Step}:
		return "", errors.New("the rollout has changed meanwhile: look at it again")
	}
	value, then, err := action.annotation(status)
	if err != nil {
		return "", err
	}
	if err := effective.Annotate(ctx, client, source, v1alpha1.PromoteAnnotation, value); err != nil {
		return "", fmt.Errorf("the rollout of %s stays as it is: %w", source, err)
	}
	return then, nil
}

// annotation returns the value that requests the action, and a sentence about its effect.
func (a Action) annotation(status *v1alpha1.RolloutStatus) (value, then string, err error) {
	switch a {
	case PromoteFull:
		return status.Attempt, "brings the new profile to all pods", nil
	case Abort:
		return status.Attempt + "/" + v1alpha1.PromoteReturn, "gives all pods the old profile again", nil
	case Promote:
		if status.Phase == v1alpha1.RolloutReturned {
			return "", "", fmt.Errorf("the rollout went back to the old profile: %s Change the profile, or use --full to bring the new one to all pods", status.Message)
		}
		return status.Attempt + "/" + strconv.Itoa(int(status.Step)), fmt.Sprintf("goes on after step %d", status.Step), nil
	default:
		return "", "", fmt.Errorf("found the action %q, expected %s, %s or %s", string(a), Promote, PromoteFull, Abort)
	}
}

// read returns status.rollout of a profile of either kind.
func read(ctx context.Context, client kubernetes.Interface, source downgrade.Source) (*v1alpha1.RolloutStatus, error) {
	body, err := apierror.Body(client.CoreV1().RESTClient().Get().AbsPath(effective.Path(source)...).Do(ctx))
	switch {
	case apierrors.IsNotFound(err) && source.Namespace != "":
		return nil, fmt.Errorf("there is no %s in namespace %s", source, source.Namespace)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no %s", source)
	case err != nil:
		return nil, fmt.Errorf("%s could not be read: %w", source, err)
	}
	var found struct {
		Status struct {
			Rollout *v1alpha1.RolloutStatus `json:"rollout"`
		} `json:"status"`
	}
	if err := json.Unmarshal(body, &found); err != nil {
		return nil, fmt.Errorf("%s can't be read: %w", source, err)
	}
	return found.Status.Rollout, nil
}
