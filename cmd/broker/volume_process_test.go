// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"errors"
	"os"
	"testing"
)

// asPod runs a broker as the user and the group that it has in a pod, if the test may do so. The broker listens in a directory with
// the owner and mode of the root of an emptyDir.
func asPod(t *testing.T, at *place, mode os.FileMode, args ...string) *process {
	t.Helper()
	if err := errors.Join(os.Mkdir(at.sockets, 0o755), os.Chmod(at.sockets, mode)); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		return start(t, at.args(args...)...)
	}
	return startProgram(t, environment(), "setpriv", append([]string{"--reuid=65532", "--regid=65532", "--groups=60471", binary}, at.args(args...)...)...)
}

func TestABrokerServesInAVolumeWhoseRootIsRoots(t *testing.T) {
	for sentence, mode := range map[string]os.FileMode{
		"an emptyDir":                         os.ModePerm,
		"an emptyDir of a pod with a fsGroup": os.ModePerm | os.ModeSetgid,
	} {
		t.Run(sentence, func(t *testing.T) {
			at := newPlace(t, "sha-256")
			asPod(t, at, mode, "--callers", "app").listening()
			if _, err := hashes(t, connect(t, at.socket("app"))); err != nil {
				t.Error(err)
			}
			if info, err := os.Stat(at.sockets); err != nil || os.Geteuid() == 0 && info.Mode()&^os.ModeDir != mode {
				t.Errorf("the root of the volume is %v now, %v", info.Mode(), err)
			}
		})
	}
}
