// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// lowContrast returns texts whose contrast to their background is below 4.5 (WCAG 2.2, success criterion 1.4.3 AA). WCAG exempts
// disabled buttons; this test checks them, too.
const lowContrast = `(() => {
  const parse = (c) => c.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || !e.checkVisibility()) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push(walk.currentNode.textContent + ' ' + ratio);
  }
  return found;
})()`

func TestThePageIsReadableInLightAndDarkAndOnANarrowScreen(t *testing.T) {
	address := dashboard(t)
	backgrounds := map[string]bool{}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 360} {
			t.Run(fmt.Sprintf("%s, %d px", scheme, width), func(t *testing.T) {
				p := open(t, address, scheme, width)
				if found := evaluate[[]string](p, lowContrast); len(found) > 0 {
					t.Errorf("these texts have too little contrast: %q", found)
				}
				if wide := evaluate[int64](p, `document.documentElement.scrollWidth`); wide > width {
					t.Errorf("the page is %d px wide", wide)
				}
				backgrounds[scheme+" "+evaluate[string](p, `getComputedStyle(document.documentElement).backgroundColor`)] = true
				p.picture(fmt.Sprintf("%s-%d", scheme, width))
			})
		}
	}
	if len(backgrounds) != 2 || !backgrounds["light rgb(255, 255, 255)"] {
		t.Errorf("found the colours %v", backgrounds)
	}
}

// The picture in docs/dashboard.md comes from this test.
func TestThePageOfOneNamespaceShowsNothingOfOthers(t *testing.T) {
	p := open(t, dashboard(t, "-n", "shop"), "light", 1280)
	text := evaluate[string](p, `document.querySelector('main').textContent`)
	for _, own := range []string{"payments", "legacy", "statefulset/reports"} {
		if !strings.Contains(text, own) {
			t.Errorf("the page of the namespace shop does not have %s", own)
		}
	}
	for _, foreign := range []string{"archive", "tokens", "vault"} {
		if strings.Contains(text, foreign) {
			t.Errorf("the page of the namespace shop has %s, which is in bank", foreign)
		}
	}
	p.picture("page")
}

func TestThePageShowsTextOfTheClusterAsText(t *testing.T) {
	p := open(t, dashboard(t), "light", 1280)
	for what, selector := range map[string]string{
		"the message of a profile":        "#profiles",
		"the reason of a deprecation":     "#deprecated",
		"the owner that a pod has chosen": "#problems",
	} {
		if text := evaluate[string](p, `document.querySelector('`+selector+`').textContent`); !strings.Contains(text, hostile) {
			t.Errorf("%s is not in %s", what, text)
		}
	}
	if n := evaluate[int](p, `document.querySelectorAll('main img, main script, body script').length`); n != 0 {
		t.Errorf("the page has %d elements that the cluster brought", n)
	}
	if title := evaluate[string](p, `document.title`); !strings.HasSuffix(title, "Crypto brokers") {
		t.Errorf("the title is %q", title)
	}
	if commands := evaluate[string](p, `[...document.querySelectorAll('#problems code')].map((e) => e.textContent).join('\n')`); strings.Contains(commands, "echo") || !strings.Contains(commands, "kubectl crypto-broker explain odd-0 -n bank") ||
		!strings.Contains(commands, "kubectl crypto-broker restart statefulset/reports -n shop") {
		t.Errorf("found the commands\n%s", commands)
	}
}

// focused describes the element with the focus, and says whether the focus is visible.
const focused = `(() => {
  const e = document.activeElement;
  const style = getComputedStyle(e);
  const seen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
  return (e.getAttribute('aria-label') || e.textContent.trim().split('\n')[0] || e.id) + (seen ? '' : ' (not seen)');
})()`

func TestAllOfThePageIsReachedByTab(t *testing.T) {
	p := open(t, dashboard(t), "light", 1280)
	var found []string
	for range 12 {
		p.press(kb.Tab)
		found = append(found, evaluate[string](p, focused))
	}
	want := []string{
		"Skip to the content", "Overview", "Rollouts", "Attention", "Profiles", "Posture", "Changes of profiles that reach some brokers first",
		"Promote cprof/tokens in namespace bank", "Promote to all cprof/tokens in namespace bank", "Abort cprof/tokens in namespace bank",
		"Missing, outdated and other brokers, by workload, with the command that mends them",
	}
	if strings.Join(found[:len(want)], "\n") != strings.Join(want, "\n") || !strings.HasPrefix(found[len(want)], "Copy the command for ") {
		t.Errorf("found\n%s", strings.Join(found, "\n"))
	}
}

// annotation returns the annotation with the action that was asked for the rollout of bank/tokens.
func annotation(t *testing.T) string {
	t.Helper()
	p := &v1alpha1.CryptoProfile{}
	if err := kubernetes.Get(t.Context(), client.ObjectKey{Namespace: "bank", Name: "tokens"}, p); err != nil {
		t.Fatal(err)
	}
	return p.Annotations[v1alpha1.PromoteAnnotation]
}

func TestWhoMayPromotesByTheKeyboard(t *testing.T) {
	before := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "tokens"}}
	nothing := []byte(`{"metadata":{"annotations":{"` + v1alpha1.PromoteAnnotation + `":null}}}`)
	if err := kubernetes.Patch(t.Context(), before, client.RawPatch(types.MergePatchType, nothing)); err != nil {
		t.Fatal(err)
	}
	p := open(t, dashboard(t), "dark", 1280)
	const button = `document.querySelector('#rollouts button[data-action="promote"]')`
	p.await("the button is on", button+` !== null && !`+button+`.disabled`)
	evaluate[any](p, button+`.focus()`)
	p.press(kb.Enter)
	p.await("the page asks", `document.querySelector('#confirm').open`)
	p.picture("confirm")
	if found := evaluate[string](p, `document.activeElement.id`); found != "cancel" {
		t.Errorf("the focus is on %q, expected the way back", found)
	}
	p.press(kb.Escape)
	p.await("the focus is where it was", `!document.querySelector('#confirm').open && document.activeElement === `+button)
	if found := annotation(t); found != "" {
		t.Fatalf("the profile has the annotation %q, although nobody has confirmed", found)
	}
	p.press(kb.Enter, kb.Tab, kb.Enter)
	p.await("the page says what was done", `document.querySelector('#said').textContent === 'The rollout of CryptoProfile "tokens" goes on after step 2.'`)
	if found := annotation(t); found != "9f86d081-1795420800/2" {
		t.Errorf("the profile has the annotation %q", found)
	}
}

func TestWhoMayNotSeesWhyButtonsAreOff(t *testing.T) {
	p := open(t, dashboard(t, "--as", viewer), "light", 1280)
	p.await("there are buttons", `document.querySelectorAll('#rollouts button').length === 3`)
	if n := evaluate[int](p, `document.querySelectorAll('#rollouts button:disabled').length`); n != 3 {
		t.Errorf("%d of 3 buttons are off", n)
	}
	const described = `document.getElementById(document.querySelector('#rollouts button').getAttribute('aria-describedby')).innerText`
	if found := evaluate[string](p, described); found != "The right to patch cryptoprofiles in namespace bank is missing." {
		t.Errorf("found the reason %q", found)
	}
	p.picture("viewer")
}

func TestThePageFollowsAChange(t *testing.T) {
	p := open(t, dashboard(t), "light", 1280)
	row := `[...document.querySelectorAll('#profiles tbody tr')].find((row) => row.textContent.includes('cprof/payments'))`
	p.await("all serve it", row+`.textContent.includes('2 of 2') && `+row+`.textContent.includes('Served')`)
	evaluate[any](p, `window.kept = `+row+`; undefined`)
	set := func(updated int32) {
		profile := &v1alpha1.CryptoProfile{}
		err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
			if err := kubernetes.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "payments"}, profile); err != nil {
				return false, err
			}
			served(updated, 2)(profile)
			return kubernetes.Status().Update(ctx, profile) == nil, nil // repeat after a conflict
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	set(1)
	p.await("one serves it", row+`.textContent.includes('1 of 2') && `+row+`.textContent.includes('Propagating') && `+row+`.querySelector('progress').value === 1`)
	p.picture("propagating")
	set(2)
	p.await("all serve it again", row+`.textContent.includes('2 of 2') && `+row+`.textContent.includes('Served')`)
	if !evaluate[bool](p, `window.kept === `+row) {
		t.Error("the row is another element, which loses the focus")
	}
}
