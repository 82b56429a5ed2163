// SPDX-License-Identifier: Apache-2.0

package keys

import "time"

// WithPollInterval sets how often the directory is read without a notification of a change.
func WithPollInterval(d time.Duration) Option {
	return func(o *options) { o.pollInterval = d }
}
