package docgen_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/qtype-dev/qtype/internal/docgen"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// docs/llms.txt is up to date, and its pages exist.
func TestLLMs(t *testing.T) {
	text, err := docgen.LLMs()
	testkit.Must(t, err)
	if testkit.ReadFile(t, filepath.Join(root, docgen.LLMsFile)) != text {
		t.Errorf("%s is not up to date: run make generate", docgen.LLMsFile)
	}
	pages := regexp.MustCompile(`main/(docs/[^)]*)\)`).FindAllStringSubmatch(text, -1)
	if len(pages) < 50 {
		t.Errorf("it has %d pages", len(pages))
	}
	for _, m := range pages {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Error(err)
		}
	}
}
