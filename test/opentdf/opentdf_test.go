// SPDX-License-Identifier: Apache-2.0

package opentdf

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opentdf/platform/lib/ocrypto"
	"github.com/opentdf/platform/sdk"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

const plaintext = "what only some may read"

// goClient is OpenTDF's Go SDK.
type goClient struct {
	*sdk.SDK
	url string
}

// newGoClient returns a client of a service whose files name it by kas.
func newGoClient(t *testing.T, service, kas string) goClient {
	t.Helper()
	client, err := sdk.New(service, sdk.WithClientCredentials("reader", "secret", nil), sdk.WithInsecurePlaintextConn())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return goClient{client, kas}
}

func (c goClient) encrypt(t *testing.T, algorithm ocrypto.KeyType, options ...sdk.TDFOption) []byte {
	t.Helper()
	var file bytes.Buffer
	if _, err := c.CreateTDF(&file, bytes.NewReader([]byte(plaintext)), append(options, sdk.WithAutoconfigure(false),
		sdk.WithKasInformation(sdk.KASInfo{URL: c.url, Default: true, Algorithm: string(algorithm)}))...); err != nil {
		t.Fatal(err)
	}
	if kind := `"type":"` + types[algorithm] + `"`; !bytes.Contains(file.Bytes(), []byte(kind)) {
		t.Fatalf("the SDK has not made a file with %s", kind)
	}
	return file.Bytes()
}

// types are the types of wrapped keys.
var types = map[ocrypto.KeyType]string{
	ocrypto.RSA2048Key: "wrapped", ocrypto.EC256Key: "ec-wrapped", ocrypto.EC384Key: "ec-wrapped", ocrypto.EC521Key: "ec-wrapped",
	ocrypto.MLKEM768Key: "mlkem-wrapped", ocrypto.MLKEM1024Key: "mlkem-wrapped", ocrypto.HybridXWingKey: "hybrid-wrapped",
}

func (c goClient) decrypt(file []byte, session ocrypto.KeyType) (string, error) {
	reader, err := c.LoadTDF(bytes.NewReader(file), sdk.WithKasAllowlist([]string{c.url}), sdk.WithSessionKeyType(session))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(reader)
	return string(text), err
}

// pythonClient is otdf-python.
type pythonClient struct{ packages, url string }

func newPythonClient(t *testing.T, url string) pythonClient {
	t.Helper()
	packages, err := environment.PythonPackage{Name: "otdf-python", Version: "0.11.0"}.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return pythonClient{packages, url}
}

func (c pythonClient) run(t *testing.T, verb string, input []byte) []byte {
	t.Helper()
	script := exec.Command("python3", "client.py", verb, c.url)
	script.Env = append(os.Environ(), "PYTHONPATH="+c.packages, "PYTHONDONTWRITEBYTECODE=1")
	return output(t, script, input)
}

// output runs a client, which gets the names of a file with input and of one for its output.
func output(t *testing.T, client *exec.Cmd, input []byte) []byte {
	t.Helper()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.WriteFile(from, input, 0o600); err != nil {
		t.Fatal(err)
	}
	client.Args = append(client.Args, from, to)
	if said, err := client.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(client.Args, " "), err, said)
	}
	content, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestOpenTDFsClientsReadEachOthersFiles(t *testing.T) {
	url := start(t, "plainBearer").service
	inGo, inPython := newGoClient(t, url, url), newPythonClient(t, url)
	sessions := []ocrypto.KeyType{ocrypto.RSA2048Key, ocrypto.EC256Key, ocrypto.EC384Key, ocrypto.EC521Key, ocrypto.MLKEM768Key, ocrypto.MLKEM1024Key}
	for algorithm, forPython := range map[ocrypto.KeyType]bool{
		ocrypto.RSA2048Key: true, ocrypto.EC256Key: true, ocrypto.EC384Key: false, ocrypto.EC521Key: false, ocrypto.MLKEM768Key: false, ocrypto.MLKEM1024Key: false, ocrypto.HybridXWingKey: false,
	} {
		t.Run("a file of Go with "+string(algorithm), func(t *testing.T) {
			file := inGo.encrypt(t, algorithm)
			for _, session := range sessions {
				if text, err := inGo.decrypt(file, session); err != nil || text != plaintext {
					t.Errorf("Go with a session key %s: found %q, %v", session, text, err)
				}
			}
			if forPython {
				if text := inPython.run(t, "decrypt", file); string(text) != plaintext {
					t.Errorf("Python: found %q", text)
				}
			}
		})
	}
	t.Run("a file of Python", func(t *testing.T) {
		file := inPython.run(t, "encrypt", []byte(plaintext))
		if text, err := inGo.decrypt(file, ocrypto.EC256Key); err != nil || text != plaintext {
			t.Errorf("Go: found %q, %v", text, err)
		}
		if text := inPython.run(t, "decrypt", file); string(text) != plaintext {
			t.Errorf("Python: found %q", text)
		}
	})
	t.Run("a file that was changed", func(t *testing.T) { testChangedFiles(t, inGo) })
}

// testChangedFiles checks what the SDK says of files whose policy, binding or wrapped key is
// not what their creator has written.
func testChangedFiles(t *testing.T, client goClient) {
	for _, algorithm := range []ocrypto.KeyType{ocrypto.RSA2048Key, ocrypto.EC256Key, ocrypto.MLKEM768Key, ocrypto.HybridXWingKey} {
		file := client.encrypt(t, algorithm)
		for name, change := range map[string]func(encryption, access map[string]any){
			"policy": func(encryption, _ map[string]any) {
				encryption["policy"] = base64.StdEncoding.EncodeToString([]byte(`{"uuid":"other","body":{"dataAttributes":[],"dissem":[]}}`))
			},
			"attribute": func(encryption, _ map[string]any) {
				encryption["policy"] = base64.StdEncoding.EncodeToString([]byte(`{"uuid":"other","body":{"dataAttributes":[{"attribute":"https://a/attr/b/value/c"}]}}`))
			},
			"binding": func(_, access map[string]any) {
				access["policyBinding"].(map[string]any)["hash"] = base64.StdEncoding.EncodeToString(make([]byte, 32))
			},
			"wrapped key": func(_, access map[string]any) {
				wrapped, err := base64.StdEncoding.DecodeString(access["wrappedKey"].(string))
				if err != nil {
					t.Fatal(err)
				}
				wrapped[len(wrapped)-1] ^= 1
				access["wrappedKey"] = base64.StdEncoding.EncodeToString(wrapped)
			},
		} {
			t.Run(name+" with "+string(algorithm), func(t *testing.T) {
				if text, err := client.decrypt(changed(t, file, change), ocrypto.RSA2048Key); !errors.Is(err, sdk.ErrRewrapBadRequest) {
					t.Errorf("found %q, %v, expected a request that is refused", text, err)
				}
			})
		}
	}
}

// changed returns a file with another manifest.
func changed(t *testing.T, file []byte, change func(encryption, access map[string]any)) []byte {
	t.Helper()
	in, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	writer := zip.NewWriter(&out)
	for _, member := range in.File {
		reader, err := member.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if member.Name == "0.manifest.json" {
			manifest := map[string]any{}
			if err := json.Unmarshal(content, &manifest); err != nil {
				t.Fatal(err)
			}
			encryption := manifest["encryptionInformation"].(map[string]any)
			change(encryption, encryption["keyAccess"].([]any)[0].(map[string]any))
			if content, err = json.Marshal(manifest); err != nil {
				t.Fatal(err)
			}
		}
		to, err := writer.CreateHeader(&zip.FileHeader{Name: member.Name, Method: zip.Store})
		if err == nil {
			_, err = to.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
