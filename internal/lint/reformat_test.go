package lint_test

import (
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/yamlformat"
)

// TestReformat_KeepsDocuments formats the examples of all rules with other indentation
// and more white space: they have the same diagnostics as before, and formatting them
// again changes nothing.
func TestReformat_KeepsDocuments(t *testing.T) {
	originals := validDocuments(t)
	folder(t, nil)
	changed := 0
	rapid.Check(t, func(t *rapid.T) {
		text := spaced(t, rapid.SampledFrom(originals).Draw(t, "document"))
		testkit.Must(t, os.WriteFile("app.yaml", []byte(text), 0o600))
		before := reported(t)
		changes, failed, err := lint.Reformat(t.Context(), lint.Finder{Paths: []string{"app.yaml", "./app.yaml"}}, yamlformat.Format)
		if err != nil || len(failed) > 0 || len(changes) > 1 {
			t.Fatal(changes, failed, err)
		}
		for _, c := range changes {
			changed++
			testkit.Must(t, c.Write())
		}
		if after := reported(t); before != after {
			t.Fatalf("the diagnostics changed\nfrom %s\nto %s\n%s", before, after, text)
		}
		if again, _, _ := lint.Reformat(t.Context(), lint.Finder{Paths: []string{"app.yaml"}}, yamlformat.Format); len(again) > 0 {
			shown, _ := again[0].Diff()
			t.Fatalf("formatting again has changes:\n%s", shown)
		}
	})
	if changed == 0 {
		t.Error("no document was changed")
	}
}

// reported returns the codes and messages of app.yaml, without positions.
func reported(t *rapid.T) string {
	var all []string
	for _, d := range checkFile(t) {
		all = append(all, d.Code+" "+d.Message)
	}
	return strings.Join(all, "\n")
}

// spaced indents each level of a document by more spaces, and adds white space and comments.
func spaced(t *rapid.T, text string) string {
	times := rapid.IntRange(1, 3).Draw(t, "times")
	var b strings.Builder
	for line := range strings.Lines(text) {
		content := strings.TrimLeft(line, " ")
		indent := strings.Repeat(" ", times*(len(line)-len(content)))
		if strings.HasPrefix(content, "- ") && times > 1 {
			content = "-" + strings.Repeat(" ", 2*times-1) + content[2:]
		}
		if rapid.IntRange(0, 9).Draw(t, "comment") == 0 && !strings.Contains(text, "|\n") {
			b.WriteString(indent + "# a comment  \n")
		}
		b.WriteString(indent + strings.TrimSuffix(content, "\n") + rapid.SampledFrom([]string{"", "", "  "}).Draw(t, "end") + "\n")
	}
	return b.String()
}
