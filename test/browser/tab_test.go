// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is a page in its own browser.
type tab struct {
	ctx context.Context
	t   *testing.T

	mu       sync.Mutex
	requests []string
	said     []string // errors and warnings of the console, exceptions, dialogs
}

// open opens the dashboard, and waits until it shows pods.
func open(t *testing.T, address, scheme string, width int64) *tab {
	t.Helper()
	p := openPage(t, address, address, scheme, width)
	p.await("the page shows pods", `document.querySelector('#problems tbody tr') !== null`)
	return p
}

// openPage opens a page of a width, in a colour scheme, and ends the browser with the test. It fails the test if the page has
// written to the console, or has requested a URL that does not begin with origin.
func openPage(t *testing.T, address, origin, scheme string, width int64) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browser.Path), chromedp.Env(browser.Environment...), chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(2*time.Minute), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(allocator)
	p := &tab{ctx: ctx, t: t}
	t.Cleanup(func() {
		end()
		endAllocator()
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.said) > 0 {
			t.Errorf("the page said %q", p.said)
		}
		for _, url := range p.requests {
			if !strings.HasPrefix(url, origin) && !strings.HasPrefix(url, "data:") {
				t.Errorf("the page has asked for %s", url)
			}
		}
	})
	if err := chromedp.Listen(ctx, p.hear); err != nil {
		t.Fatal(err)
	}
	call(p, cdpruntime.Enable, cdp.Empty{})
	call(p, log.Enable, cdp.Empty{})
	call(p, network.Enable, network.EnableParams{})
	call(p, page.Enable, page.EnableParams{})
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	p.do(chromedp.EmulateViewport(width, 900), chromedp.Navigate(address))
	return p
}

func (p *tab) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	case *cdpruntime.EventConsoleAPICalled:
		said, _ := json.Marshal(e.Args)
		p.said = append(p.said, string(said))
	case *cdpruntime.EventExceptionThrown:
		p.said = append(p.said, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		p.said = append(p.said, e.Entry.Text+" "+e.Entry.URL)
	case *page.EventJavascriptDialogOpening:
		p.said = append(p.said, "a dialog: "+e.Message)
	}
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// evaluate returns the value of an expression of JavaScript in the page.
func evaluate[T any](p *tab, expression string) T {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// await waits until an expression is true.
func (p *tab) await(what, expression string) {
	p.t.Helper()
	deadline := time.After(2 * time.Minute)
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for !evaluate[bool](p, expression) {
		select {
		case <-deadline:
			p.t.Fatalf("not true within two minutes: %s. The page has:\n%s", what, evaluate[string](p, `document.body.innerText`))
		case <-ticks.C:
		}
	}
}

// press presses keys one after the other.
func (p *tab) press(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		p.do(chromedp.KeyEvent(key))
	}
}

// picture writes a picture of the page into the folder that DASHBOARD_PICTURES names, if it is set.
func (p *tab) picture(name string) {
	p.t.Helper()
	folder := os.Getenv("DASHBOARD_PICTURES")
	if folder == "" {
		return
	}
	data, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), data, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// call runs a command of the DevTools protocol.
func call[P, R any](p *tab, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	result, err := chromedp.Call(p.ctx, command, params)
	if err != nil {
		p.t.Fatalf("%s: %v", command.Method, err)
	}
	return result
}
