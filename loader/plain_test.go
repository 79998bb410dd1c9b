package loader_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
)

// value reads a text as another system's file.
func value(t *testing.T, text string) (*loader.Value, diag.List) {
	t.Helper()
	path := testkit.WriteFile(t, "file.yaml", text)
	v, _, diags := loader.LoadValue(t.Context(), path, loader.Options{})
	return v, diags
}

func TestValuesOfOtherFiles(t *testing.T) {
	t.Setenv("QTYPE_TEST_NAME", "from the environment")
	v, diags := value(t, "a: &x '${QTYPE_TEST_NAME}'\nb: [*x, 3, 1.5, yes, ~]\nc: {<<: {d: 1}, e: 2}\n")
	if len(diags) > 0 || v.Kind != "mapping" || len(v.Pairs) != 3 {
		t.Fatalf("%v: %+v", diags, v)
	}
	list := v.Pairs[1].Value
	var kinds []string
	for _, item := range list.Items {
		kinds = append(kinds, item.Kind)
	}
	if got := strings.Join(kinds, " "); got != "text integer float boolean null" {
		t.Errorf("the list holds %s", got)
	}
	if list.Items[0].Text != "${QTYPE_TEST_NAME}" || list.Items[0] != v.Pairs[0].Value {
		t.Errorf("the alias is %+v", list.Items[0])
	}
	if c := v.Pairs[2]; c.Key != "c" || c.At.Start.Line != 3 || len(c.Value.Pairs) != 2 || c.Value.Pairs[1].Value.Span.Start.Column < 5 {
		t.Errorf("c is %+v", c)
	}
}

func TestOtherFilesThatCannotBeRead(t *testing.T) {
	for text, code := range map[string]string{"a: [": "QT002", "a: !include b.yaml": "QT006", "a: \x00": "QT001"} {
		if _, diags := value(t, text); len(diags) == 0 {
			t.Errorf("%q: no found, want one like %s", text, code)
		}
	}
	v, _, diags := loader.LoadValue(t.Context(), filepath.Join(t.TempDir(), "none.yaml"), loader.Options{})
	if v != nil || len(diags) != 1 || !strings.Contains(diags[0].Message, "does not exist") {
		t.Errorf("%v, %v", v, diags)
	}
}

// TestSecretsOfOtherFilesAreHidden: a text that is called like a secret; a number
// of tokens is none.
func TestSecretsOfOtherFilesAreHidden(t *testing.T) {
	_, diags := value(t, "x: {apiKey: sk-12345, maxTokens: 7777}\nx: 1\n")
	var b bytes.Buffer
	if err := diag.Text(&b, diags, diag.TextOptions{}); err != nil || len(diags) == 0 {
		t.Fatal(err, diags)
	}
	if strings.Contains(b.String(), "sk-12345") || !strings.Contains(b.String(), "7777") {
		t.Errorf("the excerpts show:\n%s", b.String())
	}
}

// JSON writes characters beyond U+FFFF as pairs of escape sequences.
func TestLoadValue_Surrogates(t *testing.T) {
	for text, want := range map[string]string{
		`["box \ud83d\udce6 \"\\ud83d\\udce6\" \u00e9"]`: "box 📦 \"\\ud83d\\udce6\" é",
		`["\ud83d\ude00\ud83d\ude01"]`:                   "😀😁",
		`["\n\ud83d"]`:                                   "", // half of a pair
	} {
		v, diags := value(t, text)
		switch {
		case want == "" && diags.Errors() == 0:
			t.Errorf("%s: no error", text)
		case want != "" && (v == nil || len(v.Items) != 1 || v.Items[0].Text != want):
			t.Errorf("%s: %+v, %v", text, v, diags)
		}
	}
}
