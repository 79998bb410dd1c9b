package format

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestFormats_Documentation: docs/retrieval.md has the table of formats.
func TestFormats_Documentation(t *testing.T) {
	page, err := os.ReadFile("../../../docs/retrieval.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Formats() {
		pages := ""
		if f.Paged {
			pages = "yes"
		}
		row := fmt.Sprintf("| %s | `%s` | %s | %s |\n", f.Label, strings.Join(f.Extensions, "`, `"), f.Doc, pages)
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/retrieval.md lacks the row\n%s", row)
		}
	}
}
