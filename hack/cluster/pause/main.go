// SPDX-License-Identifier: Apache-2.0

// Command pause holds the namespaces of a pod open: it is the first process of every pod sandbox of a test cluster.
// It ends on SIGINT or SIGTERM. In a pod with a shared process namespace it also reaps orphaned processes.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		if err := reap(); err != nil {
			fmt.Fprintf(os.Stderr, "pause: waiting for ended processes: %v\n", err)
			os.Exit(1)
		}
	}
}

// reap collects every child that has ended. One SIGCHLD can stand for several of them.
func reap() error {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.ECHILD, err == nil && pid == 0:
			return nil
		case err != nil:
			return err
		}
	}
}
