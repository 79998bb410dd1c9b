package lint_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec/diag"
)

// likelyKeys are keys of other systems.
var likelyKeys = []string{"name", "if", "then", "prompt", "system_prompt", "temperature", "max_iterations", "url", "model_name", "input", "output", "text", "default", "type", "id", "value"}

// word matches a key or a value that a mutation may change.
var word = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]{2,}`)

// TestFix_NeverChangesMeaning mutates one word of valid documents: the document after
// the fixes has no diagnostic that neither the mutated nor the original document has, except
// errors of meaning elsewhere that an error of form had hidden. Fixing it again changes nothing.
func TestFix_NeverChangesMeaning(t *testing.T) {
	originals := validDocuments(t)
	folder(t, nil)
	fixes, harmless := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		original := rapid.SampledFrom(originals).Draw(t, "document")
		known, hidden := map[string]bool{}, false
		for _, text := range []string{original, mutate(t, original)} {
			testkit.Must(t, os.WriteFile("app.yaml", []byte(text), 0o600))
			for _, d := range checkFile(t) {
				known[d.Code+" "+d.Message] = true
				hidden = hidden || d.Severity == diag.Error && d.Code < "QT2"
			}
		}
		find := lint.Finder{Paths: []string{"app.yaml"}}
		changes, results, err := lint.Fix(t.Context(), find, options())
		testkit.Must(t, err)
		for _, d := range lint.Diagnostics(results) {
			if elsewhere := hidden && d.Code >= "QT2" && !isChanged(t, changes, d); !known[d.Code+" "+d.Message] && !elsewhere {
				text, _ := changes[0].Diff()
				t.Fatalf("the fix causes %v\n%s", d, text)
			}
		}
		if harmless++; len(changes) == 0 {
			return
		}
		fixes++
		testkit.Must(t, changes[0].Write())
		if again, _, _ := lint.Fix(t.Context(), find, options()); len(again) > 0 {
			text, _ := again[0].Diff()
			t.Fatalf("the second run has changes:\n%s", text)
		}
	})
	if fixes == 0 {
		t.Errorf("none of %d documents was fixed", harmless)
	}
}

// isChanged reports whether the line of an error is one that the fixes changed.
func isChanged(t *rapid.T, changes []lint.Change, d diag.Diagnostic) bool {
	before, err := os.ReadFile("app.yaml") // not written yet
	testkit.Must(t, err)
	return d.Severity == diag.Error && len(changes) > 0 && !strings.Contains("\n"+string(before)+"\n", "\n"+d.Span.File.Line(d.Span.Start.Line)+"\n")
}

func checkFile(t *rapid.T) diag.List {
	documents, err := lint.Finder{Paths: []string{"app.yaml"}}.Find(t.Context())
	testkit.Must(t, err)
	return lint.Diagnostics(lint.Check(t.Context(), documents, options()))
}

// validDocuments returns the valid examples of all rules.
func validDocuments(t *testing.T) []string {
	t.Helper()
	var texts []string
	for _, r := range lint.Rules() {
		if len(word.FindAllString(r.Right, 3)) == 3 {
			texts = append(texts, r.Right)
		}
	}
	if len(texts) < 100 {
		t.Fatalf("%d documents", len(texts))
	}
	return append(texts, routed, prompted, valid, placeholder("{name}"))
}

// mutate misspells a word of a document, or replaces it by another one.
func mutate(t *rapid.T, text string) string {
	places := word.FindAllStringIndex(text, -1)
	at := rapid.SampledFrom(places).Draw(t, "word")
	old := text[at[0]:at[1]]
	i := rapid.IntRange(0, len(old)-2).Draw(t, "letter")
	letters := []byte(old)
	switch rapid.SampledFrom([]string{"swap", "drop", "repeat", "key", "word"}).Draw(t, "how") {
	case "swap":
		letters[i], letters[i+1] = letters[i+1], letters[i]
	case "drop":
		letters = slices.Delete(letters, i, i+1)
	case "repeat":
		letters = slices.Insert(letters, i, letters[i])
	case "key":
		letters = []byte(rapid.SampledFrom(likelyKeys).Draw(t, "key"))
	default:
		other := rapid.SampledFrom(places).Draw(t, "other")
		letters = []byte(text[other[0]:other[1]])
	}
	return text[:at[0]] + string(letters) + text[at[1]:]
}
