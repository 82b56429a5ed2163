// SPDX-License-Identifier: Apache-2.0

package libraries

import (
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Use makes handler the log of controller-runtime, of client-go and of the standard library, whose
// HTTP servers write to the package log. Controller-runtime keeps the first handler that it gets
// until the process ends.
func Use(handler slog.Handler) {
	logger := logr.FromSlogHandler(handler)
	log.SetLogger(logger)
	klog.SetLogger(logger)
	slog.SetDefault(slog.New(handler)) // from now on the package log writes to this logger
}
