// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
)

var errFullDisk = errors.New("no space left on device")

// fullDisk is an output that takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFullDisk }

func TestAResultThatCannotBeWrittenIsAnError(t *testing.T) {
	for _, format := range []string{commandline.FormatLog, commandline.FormatJSON, commandline.FormatText} {
		for _, lines := range []string{"json", "text"} {
			t.Run(format+" with lines in "+lines, func(t *testing.T) {
				t.Setenv("CRYPTO_BROKER_LOG_FORMAT", lines)
				cmd := &cobra.Command{}
				cmd.SetOut(fullDisk{})
				p := printer{output: &commandline.Choice{Value: format}}
				if err := p.open(cmd); err != nil {
					t.Fatal(err)
				}
				if err := p.print(&result{message: "Signed", text: []byte("00\n")}, time.Second); !errors.Is(err, errFullDisk) {
					t.Errorf("got the error %v", err)
				}
			})
		}
	}
}
