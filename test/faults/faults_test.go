// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestEachFaultHasANameOfItsOwnAndAllTextsOfThePage(t *testing.T) {
	seen := map[string]bool{}
	for _, each := range faults {
		if !regexp.MustCompile(`^[a-z-]+$`).MatchString(each.name) || seen[each.name] {
			t.Errorf("found the name %q, expected small letters and dashes, and each name once", each.name)
		}
		seen[each.name] = true
		for _, text := range []string{each.title, each.how, each.sees, each.act} {
			if strings.TrimSpace(text) == "" {
				t.Errorf("%s has an empty text", each.name)
			}
		}
		if each.happen == nil {
			t.Errorf("%s does nothing", each.name)
		}
	}
}

func TestAFaultThatIsNotKnownIsRefusedWithTheNames(t *testing.T) {
	_, err := readOptions([]string{"--only", "kubelet,earthquake"})
	if err == nil || !strings.Contains(err.Error(), `"earthquake"`) || !strings.Contains(err.Error(), "broker-killed") {
		t.Errorf("found the error %v, expected one that names earthquake and the faults", err)
	}
}

func TestOneFaultAloneWritesNoPage(t *testing.T) {
	o, err := readOptions([]string{"--report", "page.md", "--only", "kubelet"})
	if err != nil || o.report != "" || len(o.only) != 1 {
		t.Errorf("found the options %+v and the error %v, expected no report", o, err)
	}
}

func TestThePageHasARowAndASectionForEachFault(t *testing.T) {
	r := &results{began: time.Now()}
	for _, each := range faults {
		r.add(&result{fault: each, calls: 100, served: -time.Second, right: 4 * time.Second})
	}
	r.all[2].problems = []string{"2 calls failed, expected none"}
	page := r.markdown()
	for _, each := range faults {
		for _, part := range []string{"| [" + each.title + "](#", "\n## " + each.title + "\n", "FAULTS=" + each.name + "`", each.sees, each.act} {
			if !strings.Contains(page, part) {
				t.Errorf("%s: the page lacks %q", each.name, part)
			}
		}
	}
	if !strings.Contains(page, "**Wrong**: 2 calls failed") || !strings.Contains(page, "1 faults with something wrong") {
		t.Error("the page does not say what is wrong")
	}
	if r.failed() == nil {
		t.Error("found no error, expected one for the fault that lost calls")
	}
}

// Nobody runs all faults for each commit, so this shows when the texts changed and the page did not.
func TestTheCommittedPageHasTheTextsOfTheFaults(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range faults {
		for _, text := range []string{each.title, each.how, each.sees, each.act} {
			if !strings.Contains(string(page), text) {
				t.Errorf("docs/faults.md lacks %q of %s: make chaos writes it anew", text, each.name)
			}
		}
	}
}

func TestTheFunctionThatReadsTheClockIsFound(t *testing.T) {
	if _, err := shiftedClock(time.Minute); err != nil {
		return // for this processor, the fault is refused
	}
	image := vdsoImage(t)
	if _, err := clockFunction(image, 20); err != nil {
		t.Error(err)
	}
	if _, err := clockFunction(image, 1<<20); err == nil {
		t.Error("found no error for code that has no room")
	}
}

// vdsoImage returns the functions of the kernel in this very process.
func vdsoImage(t *testing.T) []byte {
	t.Helper()
	begin, end, err := vdso(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	image := make([]byte, end-begin)
	if _, err := memory.ReadAt(image, begin); err != nil {
		t.Fatal(err)
	}
	return image
}
