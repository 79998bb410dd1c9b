package lint_test

import (
	"os"
	"testing"

	"github.com/qtype-dev/qtype/internal/lint"
)

// FuzzFix checks that no page makes Find, Check or Fix fail, and that a second run
// changes nothing.
func FuzzFix(f *testing.F) {
	f.Add(page)
	f.Add("```yaml\n" + broken + "```\n")
	f.Add("~~~yml x\r\nid: 42 # qtype:ignore QT105, QT202: why\r\nflow: []\r\nmodels: x\r\n")
	f.Add("```yaml\nid: &a [ # qtype:ignore QT002\n  'x # qtype:ignore'\nmodels: !inclde x\n```")
	f.Add("  ```yaml\n  id: a\n  flows: >\n    # qtype:ignore QT105\n\n  # qtype:ignore QT105\n  \"model\": 'x'\n")
	f.Chdir(f.TempDir())
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile("page.md", []byte(text), 0o600); err != nil {
			t.Skip(err)
		}
		find := lint.Finder{Paths: []string{"page.md"}}
		changes, _, err := lint.Fix(t.Context(), find, options())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			if err := c.Write(); err != nil {
				t.Fatal(err)
			}
		}
		if len(changes) == 0 {
			return
		}
		if again, _, _ := lint.Fix(t.Context(), find, options()); len(again) > 0 {
			text, _ := again[0].Diff()
			t.Fatalf("changes of the second run:\n%s", text)
		}
	})
}
