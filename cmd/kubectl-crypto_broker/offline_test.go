// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/manifest"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// call runs the plugin and returns its exit code and its output.
func call(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

// golden compares with a file in testdata, or writes it.
func golden(t *testing.T, name, found string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(found), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), found); diff != "" {
		t.Errorf("found (+) other than %s (-); if that is meant, run go test ./cmd/kubectl-crypto_broker -update:\n%s", path, diff)
	}
}

// withoutVersion removes from an output the parts that depend on the build of the test.
func withoutVersion(text string) string {
	return strings.ReplaceAll(text, "broker:"+imageTag(), "broker:VERSION")
}

func TestTheOutputOfCommandsThatNeedNoCluster(t *testing.T) {
	tests := map[string]struct {
		args []string
		code int
	}{
		"help.txt":             {[]string{"--help"}, program.ExitOK},
		"help-explain.txt":     {[]string{"help", "explain"}, program.ExitOK},
		"help-inject.txt":      {[]string{"help", "inject"}, program.ExitOK},
		"help-inventory.txt":   {[]string{"help", "inventory"}, program.ExitOK},
		"inject-refused.txt":   {[]string{"inject", "-f", "testdata/refused.yaml"}, program.ExitFailed},
		"validate.txt":         {[]string{"validate", "-f", "testdata/app.yaml", "-f", "../../config/samples/catalogue"}, program.ExitOK},
		"validate-shapes.txt":  {[]string{"validate", "-f", "testdata/shapes.yaml"}, program.ExitFailed},
		"validate-refused.txt": {[]string{"validate", "-f", "testdata/refused.yaml"}, program.ExitFailed},
		"explain.txt":          {[]string{"explain", "-f", "testdata/kinds.yaml"}, program.ExitOK},
		"explain-refused.txt":  {[]string{"explain", "-f", "testdata/refused.yaml"}, program.ExitFailed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := call(t, "", test.args...)
			if code != test.code {
				t.Errorf("exit code %d, expected %d", code, test.code)
			}
			golden(t, name, withoutVersion("$ kubectl crypto-broker "+strings.Join(test.args, " ")+"\n"+stdout+"--- standard error\n"+stderr))
		})
	}
}

func TestWhatIsPrintedIsWhatTheWebhookMakes(t *testing.T) {
	files := []string{"testdata/app.yaml", "testdata/kinds.yaml"}
	code, stdout, stderr := call(t, "", "inject", "-f", files[0], "-f", files[1])
	if code != program.ExitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	given, err := manifest.ReadDocuments(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	printed, err := manifest.ReadDocuments([]string{"-"}, strings.NewReader(stdout))
	if err != nil || len(printed) != len(given) {
		t.Fatalf("%d documents were printed, expected %d: %v", len(printed), len(given), err)
	}
	labelled, injected := manifest.LabelledNamespaces(given), 0
	for i := range given {
		for j, item := range given[i].Items() {
			before, err := item.Template("default")
			if err != nil {
				t.Fatal(err)
			}
			after, err := printed[i].Items()[j].Template("default")
			if err != nil {
				t.Fatal(err)
			}
			if before == nil {
				continue
			}
			want := before.Pod
			if decision, err := (&offline{}).wants(before, labelled); err != nil {
				t.Fatal(err)
			} else if decision.Inject {
				injected++
				if want, _, err = injection.Inject(before.Pod, before.Namespace, nil, defaultTemplate()); err != nil {
					t.Fatal(err)
				}
			}
			if !equality.Semantic.DeepEqual(want, after.Pod) {
				t.Errorf("%s: found other than expected:\n%s", item.Name(), cmp.Diff(want, after.Pod))
			}
		}
	}
	if injected != 3 {
		t.Errorf("%d pods got a broker, expected 3", injected)
	}
	if !strings.Contains(stdout, "unknownField: stays") || !strings.Contains(stdout, `a: "b"   # kept`) {
		t.Errorf("something that was written is gone:\n%s", stdout)
	}
}

func TestInjectingTwiceIsTheSameAsOnce(t *testing.T) {
	_, once, _ := call(t, "", "inject", "-f", "testdata/app.yaml", "-f", "testdata/kinds.yaml")
	code, twice, stderr := call(t, once, "inject", "-f", "-")
	if diff := cmp.Diff(once, twice); code != program.ExitOK || diff != "" {
		t.Errorf("exit code %d, %s\n%s", code, stderr, diff)
	}
}

func TestDocumentsThatAreNotTouchedStayLetterByLetter(t *testing.T) {
	const document = "# first\napiVersion:   v1\nkind: ConfigMap # odd   spaces\nmetadata: {name: a}\n---\n# nothing in here\n---\n{\"kind\": \"Secret\"}\n"
	code, stdout, stderr := call(t, document, "inject", "-f", "-")
	if code != program.ExitOK || stdout != document {
		t.Errorf("exit code %d, %s, found\n%s", code, stderr, stdout)
	}
}

func TestAWrongCommandLineIsOneClearSentence(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	tests := map[string]struct {
		args []string
		code int
		says string
	}{
		"no such command":                   {[]string{"list"}, program.ExitUsage, `kubectl crypto-broker: unknown command "list" (see kubectl crypto-broker --help)`},
		"no such flag":                      {[]string{"pods", "--every"}, program.ExitUsage, "kubectl crypto-broker pods: unknown flag: --every"},
		"no such format":                    {[]string{"pods", "-o", "xml"}, program.ExitUsage, `--output is "xml", expected table, wide, json, yaml`},
		"nothing to restart":                {[]string{"restart"}, program.ExitUsage, "expected either workloads as KIND/NAME, or one or more of --missing, --outdated and --refused"},
		"both to restart":                   {[]string{"restart", "deploy/a", "--missing"}, program.ExitUsage, "expected either workloads as KIND/NAME"},
		"what can't be restarted":           {[]string{"restart", "pod/a"}, program.ExitUsage, `found "pod/a", expected deployment/NAME, statefulset/NAME or daemonset/NAME`},
		"no time to be served":              {[]string{"allow", "cprof/a", "--timeout", "0s"}, program.ExitUsage, "--timeout is 0s, expected a time such as 30s"},
		"no time to come up":                {[]string{"restart", "deploy/a", "--timeout", "0s"}, program.ExitUsage, "--timeout is 0s, expected a time such as 10m"},
		"one workload in all":               {[]string{"restart", "deploy/a", "-A"}, program.ExitUsage, "--all-namespaces is for --missing, --outdated and --refused"},
		"no manifest":                       {[]string{"inject"}, program.ExitUsage, "no manifest given: expected -f FILE, or -f - for standard input"},
		"a manifest that there is not":      {[]string{"validate", "-f", "testdata/nothing.yaml"}, program.ExitFailed, "open testdata/nothing.yaml: no such file or directory"},
		"neither a pod nor a manifest":      {[]string{"explain"}, program.ExitUsage, "found 0 arguments, expected either the name of one pod or workload, or -f FILE"},
		"a cluster and its settings":        {[]string{"inject", "-f", "testdata/app.yaml", "--from-cluster", "--socket-group", "7"}, program.ExitUsage, "--socket-group is for a preview without a cluster, and --from-cluster asks one: give one of them"},
		"no cluster to inject from":         {[]string{"inject", "-f", "testdata/app.yaml", "--from-cluster"}, program.ExitFailed, "no cluster to ask: expected one in the file of --kubeconfig or KUBECONFIG, or in ~/.kube/config"},
		"no cluster":                        {[]string{"pods"}, program.ExitFailed, "no cluster to ask: expected one in the file of --kubeconfig or KUBECONFIG, or in ~/.kube/config"},
		"a topic of help that there is not": {[]string{"help", "explain", "x"}, program.ExitUsage, `unknown command "explain x"`},
		"a shell that there is not":         {[]string{"completion", "tcsh"}, program.ExitUsage, `unexpected argument "tcsh"`},
		"an argument of completion":         {[]string{"completion", "bash", "x"}, program.ExitUsage, `unexpected argument "x"`},
		"an argument of version":            {[]string{"version", "x"}, program.ExitUsage, `unexpected argument "x"`},
		"an argument of validate":           {[]string{"validate", "x"}, program.ExitUsage, `unexpected argument "x"`},
		"labels that are none":              {[]string{"outdated", "-l", "!!!"}, program.ExitUsage, `--selector is "!!!", expected labels such as app=orders: `},
		"what can't be explained":           {[]string{"explain", "service/a"}, program.ExitUsage, `found "service/a", expected the name of a pod, or deployment/NAME`},
		"a pod without a name":              {[]string{"explain", "pod/"}, program.ExitUsage, `found "pod/", expected the name of a pod`},
		"a cluster that does not answer":    {[]string{"restart", "--refused", "-A", "--server", "http://127.0.0.1:1"}, program.ExitFailed, "the cluster at http://127.0.0.1:1 does not answer: "},
		"an argument that means nothing":    {[]string{"missing", "x"}, program.ExitUsage, `unexpected argument "x"`},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			code, stdout, stderr := call(t, "", test.args...)
			if code != test.code || stdout != "" || !strings.Contains(stderr, test.says) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d, found %q, %q", code, stdout, stderr)
			}
		})
	}
}

func TestAManifestThatCannotBeReadIsToldByItsPlace(t *testing.T) {
	tests := map[string]struct{ stdin, says string }{
		"no YAML":               {"a: [b", "standard input: not readable as YAML: line 1"},
		"a field that is twice": {"a: 1\n---\nb: 1\nb: 2\n", `standard input, document 2: not readable as YAML: line 4: key "b" already set in map`},
		"no template":           {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 1}\n", `standard input: Deployment "a": there is no spec.template, expected a pod template`},
		"no pod in it":          {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: 3}\n", `standard input: Pod "a": spec.containers: found a value of the type number, expected a list`},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			for _, command := range []string{"inject", "explain"} {
				if code, _, stderr := call(t, test.stdin, command, "-f", "-"); code != program.ExitFailed || !strings.Contains(stderr, test.says) {
					t.Errorf("%s: exit code %d, found %q", command, code, stderr)
				}
			}
		})
	}
}

func TestVersionAndCompletion(t *testing.T) {
	if code, stdout, _ := call(t, "", "version"); code != program.ExitOK || !strings.HasPrefix(stdout, "kubectl-crypto_broker ") {
		t.Errorf("exit code %d, found %q", code, stdout)
	}
	if code, stdout, _ := call(t, "", "__complete", "pods", "-o", ""); code != program.ExitOK || !strings.Contains(stdout, "wide\n") {
		t.Errorf("exit code %d, found %q", code, stdout)
	}
}

func TestAnAnnotationInTheWrongPlaceIsTold(t *testing.T) {
	const manifest = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"orders","annotations":{"cryptobroker.io/inject":"true"}},"spec":{"template":{"spec":{"containers":[{"name":"app","image":"app"}]}}}}`
	code, stdout, stderr := call(t, manifest, "explain", "-f", "-")
	if code != program.ExitFailed || !strings.Contains(stdout, `Its own annotation cryptobroker.io/inject: "true" has no effect: it belongs to the template.`) {
		t.Errorf("exit code %d, found %s%s", code, stdout, stderr)
	}
}
