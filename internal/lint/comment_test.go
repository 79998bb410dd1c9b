package lint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
)

func TestComments(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       string // "CODE:line part of the message" of each diagnostic
	}{
		{"none", "id: shop\ndescription: ${NO}\n", "QT005:2"},
		{"at the end of the line", "id: shop\ndescription: ${NO} # qtype:ignore QT005\n", ""},
		{"on a separate line", "id: shop\n# qtype:ignore QT005\ndescription: ${NO}\n", ""},
		{"above other comments and blank lines", "id: shop\n  # qtype:ignore QT005\n\n# a shop\ndescription: ${NO}\n", ""},
		{"two, one above the other", "id: 42\n# qtype:ignore QT005\n# qtype:ignore QT105\ndescription: [a, '${NO}']\n", "QT105:1"},
		{"not on the next line", "id: shop # qtype:ignore QT005\ndescription: ${NO}\n", "QT005:2"},
		{"an error", "id: 42 #qtype:ignore QT105\n", ""},
		{"several codes and a reason", "id: 42 # qtype:ignore QT105, QT918: given by the shop\n", "QT021:1 QT918 has no effect"},
		{"blanks for commas", "id: shop\nid: ${NO} # qtype:ignore QT005 QT010\n", ""},
		{"after another comment", "id: 42 # the number # qtype:ignore QT105\n", ""},
		{"Windows line endings", "id: 42 # qtype:ignore QT105\r\n", ""},
		{"unused", "id: shop # qtype:ignore QT105\n", "QT021:1 QT105 has no effect"},
		{"two unused codes", "id: shop # qtype:ignore QT105, QT202\n", "QT021:1 QT105, QT202 has no effect"},
		{"at the end of the text", "id: shop\n# qtype:ignore QT105", "QT021:2 QT105 has no effect"},
		{"unused in a document with errors", "id: shop # qtype:ignore QT202\nx: 1\n", "QT103:2"},
		{"depends on the environment", "id: shop # qtype:ignore QT005, QT011\n", ""},
		{"without a code", "id: shop # qtype:ignore\n", "QT020:1 needs a code"},
		{"with a word", "id: shop # qtype:ignore unused\n", `QT020:1 "unused" is not a code`},
		{"unknown code", "id: shop # qtype:ignore QT999\n", "QT020:1 unknown code QT999"},
		{"with a blank in its name", "id: 42 # qtype: ignore QT105\n", "QT105:1 | QT020:1 write qtype:ignore"},
		{"another word", "id: 42 # qtype:ignored QT105\n", "QT105:1"},
		{"other comment", "id: shop # see the docs of qtype\n", ""},
		{"in a quoted text", "id: shop\ndescription: \"a # qtype:ignore QT105\"\n", ""},
		{"in a quoted text with a diagnostic", "id: shop\ndescription: \"${NO} # qtype:ignore QT005\"\n", "QT005:2"},
		{"in a block", "id: shop\ndescription: |\n  a # qtype:ignore QT105\n  # qtype:ignore\n", ""},
		{"in a folded block, then really", "id: shop\ndescription: >\n  a\n  # qtype:ignore QT105\n\n# qtype:ignore QT105\nmodels: []\n", "QT021:6 QT105 has no effect"},
		{"in a plain text over two lines", "id: shop\ndescription: a\n  b#qtype:ignore QT105\n", ""},
		{"in brackets", "id: shop\nmodels: [ # qtype:ignore QT105\n  1] # qtype:ignore QT105\n", "QT021:2 QT105 has no effect"},
		{"syntax error", "id: [ # qtype:ignore QT002\n", "QT002:2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder(t, map[string]string{"app.yaml": c.text})
			var got []string
			for _, d := range lint.Diagnostics(check(t, lint.Finder{Paths: []string{"app.yaml"}})) {
				got = append(got, d.Code+":"+strings.Split(d.Span.String(), ":")[1]+" "+d.Message)
			}
			var want []string
			if c.want != "" {
				want = strings.Split(c.want, " | ")
			}
			if !slices.EqualFunc(got, want, matches) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// matches reports whether a diagnostic matches "CODE:line part of the message".
func matches(got, want string) bool {
	place, part, _ := strings.Cut(want, " ")
	return strings.HasPrefix(got, place+" ") && strings.Contains(got, part)
}

// TestComments_SharedFile tests a comment in a file that several documents include.
// It is used if one of them needs it, and reported once if none does.
func TestComments_SharedFile(t *testing.T) {
	folder(t, map[string]string{
		"shared.yaml": "- {id: small, type: Model, provider: openai} # qtype:ignore QT201\n- {id: large, type: Model, provider: openai} # qtype:ignore QT108\n",
		"raw.txt":     "# qtype:ignore\n",
		"a.yaml":      "id: a\nmodels: !include shared.yaml\ndescription: !include_raw raw.txt\n",
		"b.yaml":      "id: b\nauths: [{id: small, type: api_key, api_key: x}]\nmodels: !include shared.yaml\n",
	})
	got := positions(lint.Diagnostics(check(t, lint.Finder{Paths: []string{"a.yaml", "b.yaml"}})))
	got = only(got, "QT0", "QT201")
	if d := cmp.Diff([]string{"QT021 shared.yaml:2:46"}, got); d != "" {
		t.Error(d)
	}
	got = only(positions(lint.Diagnostics(check(t, lint.Finder{Paths: []string{"a.yaml"}}))), "QT0", "QT201")
	if d := cmp.Diff([]string{"QT021 shared.yaml:1:46", "QT021 shared.yaml:2:46"}, got); d != "" {
		t.Error(d)
	}
}

// TestComments_IncludedText tests a comment at the directive of a text, in which a diagnostic is.
func TestComments_IncludedText(t *testing.T) {
	document := "id: a\nflows:\n- id: f\n  variables: [{id: x, type: text}, {id: y, type: text}]\n  inputs: [x]\n  outputs: [y]\n  steps:\n  - id: s\n    type: PromptTemplate\n    inputs: [x]\n    outputs: [y]\n    template: !include_raw raw.txt"
	for comment, want := range map[string][]string{
		"":                        {"QT921 raw.txt:2:1"},
		" # qtype:ignore QT921":   {},
		" # qtype:ignore QT905\n": {"QT921 raw.txt:2:1", "QT021 a.yaml:12:36"},
	} {
		folder(t, map[string]string{"a.yaml": document + comment, "raw.txt": "{x} # qtype:ignore QT921\n{{ x }} # qtype:ignore QT921\n"})
		got := only(positions(lint.Diagnostics(check(t, lint.Finder{Paths: []string{"a.yaml"}}))), "QT")
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: %s", comment, d)
		}
	}
}

func only(entries []string, prefixes ...string) []string {
	kept := []string{}
	for _, e := range entries {
		for _, p := range prefixes {
			if strings.HasPrefix(e, p) {
				kept = append(kept, e)
			}
		}
	}
	return kept
}

func TestApplyIgnores(t *testing.T) {
	loaded, list := loader.LoadBytes(t.Context(), "app.yaml", []byte("id: 42 # qtype:ignore QT105\ndescription: ${NO} # qtype:ignore QT005\nx: 1 # qtype:ignore\n"), options())
	if d := cmp.Diff([]string{"QT103 app.yaml:3:1", "QT020 app.yaml:3:6"}, positions(lint.ApplyIgnores(loaded.Files, append(diag.List{}, list...)))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"QT105 app.yaml:1:5", "QT103 app.yaml:3:1"}, positions(lint.IgnoreWarnings(loaded.Files, list))); d != "" {
		t.Errorf("errors are not ignored in a run: %s", d)
	}
}

// TestRules checks that the wrong example of each rule of this package is reported,
// and the right one is not.
func TestRules(t *testing.T) {
	for _, r := range lint.Rules() {
		if !strings.HasPrefix(r.Code, "QT02") {
			continue // tested where it is declared
		}
		for text, want := range map[string]bool{r.Wrong: true, r.Right: false} {
			folder(t, map[string]string{"app.yaml": text})
			got := only(positions(lint.Diagnostics(check(t, lint.Finder{Paths: []string{"app.yaml"}}))), r.Code)
			if (len(got) > 0) != want {
				t.Errorf("%s: %v in\n%s", r.Code, got, text)
			}
		}
	}
}
