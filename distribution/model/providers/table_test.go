package providers_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/distribution/model/providers"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/spec"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/models.md")

// TestProviders checks that each row of spec.Providers has a builder and each
// builder a row, and that a row is complete enough to be called.
func TestProviders(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range spec.Providers() {
		if seen[row.Name] {
			t.Errorf("%s: two rows", row.Name)
		}
		seen[row.Name] = true
		build, found := providers.Clients()[row.Name]
		if called := row.Client != spec.MockClient && row.Client != spec.MissingClient && row.Client != spec.LocalClient; called != found {
			t.Errorf("%s: client kind %d, but builder: %v", row.Name, row.Client, found)
		}
		if found && row.Embeddings != (build.Embedder != nil) {
			t.Errorf("%s: embeddings %v in the row, %v in the builder", row.Name, row.Embeddings, build.Embedder != nil)
		}
		if found && row.NoChat != (build.Chat == nil) {
			t.Errorf("%s: no chat models is %v in the row, %v in the builder", row.Name, row.NoChat, build.Chat == nil)
		}
		if cloud := row.Key == spec.CloudIdentity; found && cloud != (build.Account != nil) {
			t.Errorf("%s: a provider of a cloud has a builder with account", row.Name)
		}
		if found && row.Client != spec.LocalClient && (row.BaseURL == "" || row.BaseURLDoc == "" || len(row.KeyEnv) == 0 && row.Key != spec.CloudIdentity || len(row.Auths) == 0) {
			t.Errorf("%s: a provider that is called needs BaseURL, BaseURLDoc, KeyEnv and Auths", row.Name)
		}
		for _, tag := range row.Auths {
			if _, isKey := newAuth(t, tag).(spec.KeyAuth); found && !isKey && build.Account == nil {
				t.Errorf("%s: internal/model/provider cannot use an auth of type %s", row.Name, tag)
			}
		}
		if row.Doc == "" {
			t.Errorf("%s: no Doc", row.Name)
		}
	}
	for name := range providers.Clients() {
		if !seen[name] {
			t.Errorf("builder %s has no row in spec.Providers", name)
		}
	}
}

// newAuth makes an auth by its `type`.
func newAuth(t *testing.T, tag string) spec.Auth {
	t.Helper()
	for _, u := range spec.Unions() {
		for _, c := range u.Cases {
			if auth, ok := c.New().(spec.Auth); ok && c.Tag == tag {
				return auth
			}
		}
	}
	t.Fatalf("no auth has the type %s", tag)
	return nil
}

// TestDocs compares the table of docs/models.md with the rows; -update rewrites it.
func TestDocs(t *testing.T) { compareTable(t, "providers", providerTable()) }

// compareTable compares a table of docs/models.md, or rewrites it.
func compareTable(t *testing.T, name, table string) {
	t.Helper()
	const path = "../../../docs/models.md"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	section := regexp.MustCompile(fmt.Sprintf(`(?s)(<!-- %[1]s -->\n).*(<!-- /%[1]s -->)`, name))
	if !section.Match(raw) {
		t.Fatalf("%s has no <!-- %s --> section", path, name)
	}
	want := section.ReplaceAllString(string(raw), "${1}"+strings.ReplaceAll(table, "$", "$$")+"${2}")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want, string(raw)); d != "" {
		t.Errorf("%s is out of date; run go test ./distribution/model/providers -update\n%s", path, d)
	}
}

// providerTable writes the rows as a Markdown table.
func providerTable() string {
	var b strings.Builder
	b.WriteString("| `provider` | What it is | Key (without an `auth`) | Address (without a `base_url`) | `base_url` is | Tools | Embeddings |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, p := range spec.Providers() {
		doc := p.Doc
		switch p.Client {
		case spec.BridgeClient:
			doc += ", through langchaingo"
		case spec.MissingClient:
			doc += " (not available yet)"
		}
		if _, isCore := provider.Core()[p.Name]; !isCore && p.Client != spec.MockClient && p.Client != spec.MissingClient {
			doc += ", in the distribution"
		}
		address := p.BaseURL
		if p.BaseURLEnv != "" {
			address = fmt.Sprintf("`%s`, else %s", p.BaseURLEnv, p.BaseURL)
		}
		keys := ""
		for i, name := range p.KeyEnv {
			if i > 0 {
				keys += ", "
			}
			keys += "`" + name + "`"
		}
		switch p.Key {
		case spec.OptionalKey:
			keys += " (optional)"
		case spec.CloudIdentity:
			keys = strings.TrimPrefix(keys+", or the identity of the machine", ", or ")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", p.Name, doc, keys, address, p.BaseURLDoc, yes(p.Tools), yes(p.Embeddings))
	}
	return b.String()
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}
