// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// upgradeGuide is the guide that the test of upgrades follows.
const upgradeGuide = "upgrade.md"

// packedChart matches the name that the guide has for the chart of a release.
var packedChart = regexp.MustCompile(`crypto-broker-operator-\d+\.\d+\.\d+\.tgz`)

// guideOfUpgrades is the guide of upgrades, with the names of the test.
type guideOfUpgrades struct{ programs, text string }

// readUpgradeGuide reads the guide. A chart of a release has the names of its images; this chart gets the images of the test.
func readUpgradeGuide(t *testing.T, chart, namespace string) guideOfUpgrades {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(shared.Repository, "docs", "guides", upgradeGuide))
	must(t, err)
	var values []string
	for _, argument := range environment.InstallArguments(chart, &shared.Images) {
		if argument == "--set-string" || strings.Contains(argument, "image.") {
			values = append(values, argument)
		}
	}
	named := packedChart.ReplaceAllLiteralString(string(text), chart+" "+strings.Join(values, " "))
	return guideOfUpgrades{programsOfGuides(t), strings.ReplaceAll(named, "-n shop", "-n "+namespace)}
}

// follow runs the commands of a section.
func (g guideOfUpgrades) follow(t *testing.T, heading string) {
	t.Helper()
	_, section, found := strings.Cut(g.text, "\n"+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	commands := blocks.FindAllStringSubmatch(section, -1)
	if !found || len(commands) == 0 {
		t.Fatalf("the guide has no commands under %q", heading)
	}
	for _, block := range commands {
		output, errs := run(t, g.programs, block[2])
		t.Logf("%s%s%s", block[2], output, errs)
	}
}
