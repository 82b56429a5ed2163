// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/crypto-broker/crypto-broker-operator/test/controlgroup"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// programs are the built servers, and a folder for their files.
type programs struct {
	dir           string
	broker, floor string
	version       string
	// grouped reports whether servers can have control groups.
	grouped bool
}

// build builds the broker and the bare server in the same way as images.
func build(ctx context.Context, o options) (_ *programs, err error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	p := &programs{dir: dir, broker: filepath.Join(dir, "broker"), floor: filepath.Join(dir, "floor")}
	defer func() {
		if err != nil {
			_ = p.remove() // only the first error is returned
		}
	}()
	for _, b := range []struct{ in, what, to string }{
		{o.root, "./cmd/broker", p.broker},
		{filepath.Join(o.root, "test", "bench"), "./floor", p.floor},
	} {
		if err := runner.Build(ctx, b.in, b.to, b.what); err != nil {
			return nil, err
		}
	}
	p.version = runner.Version(o.root)
	p.grouped = canGroup()
	return p, nil
}

// canGroup reports whether this program may create control groups. It creates one and
// removes it.
func canGroup() bool {
	g, err := controlgroup.New(controlgroup.Memory)
	if err == nil {
		err = g.Remove()
	}
	if err != nil {
		runner.Progress("servers have no control groups: %v", err)
	}
	return err == nil
}

func (p *programs) remove() error { return os.RemoveAll(p.dir) }
