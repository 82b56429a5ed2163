// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// distinctive are values of the contract that stand for nothing else, so that a
// literal of the same text is a second copy. The words of flags and the names of
// namespaces are left out: they occur in sentences.
var distinctive = []string{
	contract.SocketVolume, contract.KeysVolumePrefix, contract.SessionRedisVolume, contract.KeyGatewayVolume, contract.KeyGatewayAuthorities, contract.KeyGatewayDir,
	contract.SocketDir, contract.SocketFile, contract.BrokerSocketDir, contract.ProfilesDir, contract.KeysDir, contract.SessionRedisDir,
	contract.SocketVariable, contract.StatusPortName, contract.ReadyPath,
	"--" + contract.StatusAddressFlag, "--" + contract.TrustedKeysFlag + "=", "--" + contract.StatusAddressFlag + "=",
	"--" + contract.CallersFlag + "=", "--" + contract.CallerProfilesFlag + "=", "--" + contract.SharedIdentityFlag,
	contract.InjectAnnotation, contract.InjectedAnnotation, contract.ContainersAnnotation, contract.InjectionLabel,
}

// TestNoOtherPackageRepeatsAValueOfTheContract reads the programs of this module.
// Clients are modules of their own and have their own copies, which their tests
// compare with a running broker.
func TestNoOtherPackageRepeatsAValueOfTheContract(t *testing.T) {
	root := filepath.Join("..", "..")
	files := 0
	for _, directory := range []string{"api", "broker", "cmd", "controllers", "webhook"} {
		err := filepath.WalkDir(filepath.Join(root, directory), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				filepath.Dir(path) == filepath.Join(root, "broker", "contract") {
				return err
			}
			files++
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				literal, ok := node.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					return true
				}
				if text, err := strconv.Unquote(literal.Value); err == nil && slices.Contains(distinctive, text) {
					t.Errorf("%s has the literal %q, expected the constant of package contract", set.Position(literal.Pos()), text)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 100 {
		t.Errorf("%d files were read, expected the files of the whole module", files)
	}
}
