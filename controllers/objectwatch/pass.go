// SPDX-License-Identifier: Apache-2.0

package objectwatch

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// NewBackoff returns the pauses after failed passes over the objects: from 100 ms to a minute.
func NewBackoff() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 12, Cap: time.Minute}
}

// IsRace reports whether a write failed because another process wrote first. The next pass reads
// the result of that process.
func IsRace(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
