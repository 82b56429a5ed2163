// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

func TestTheDocumentationIsSearchedFromAFolderWithoutAServer(t *testing.T) {
	repository, err := environment.Repository()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "site")
	if _, err := environment.Command(t.Context(), repository, os.Stderr, filepath.Join(repository, "hack", "site", "build"), folder); err != nil {
		t.Fatal(err)
	}
	p := openPage(t, "file://"+folder+"/index.html", "file://"+folder, "dark", 1280)
	p.await("the search is there", `document.querySelector('[data-md-component=search-query]') !== null`)
	p.do(chromedp.SendKeys(`[data-md-component=search-query]`, "downgrade guard"))
	p.await("there are results", `document.querySelectorAll('.md-search-result__item').length > 0`)
	p.await("a result leads to the page of the guard", `[...document.querySelectorAll('.md-search-result__link')].some(a => a.href.includes('/docs/downgrade-guard.html'))`)
	p.picture("site-search")
	for _, page := range []string{"docs/pods.html", "clients/js/index.html", "docs/decisions/index.html"} {
		if _, err := os.Stat(filepath.Join(folder, page)); err != nil {
			t.Error(err)
		}
	}
}
