package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/loader"
)

// BenchmarkThousandDocuments finds and checks a folder of 1,000 small documents.
func BenchmarkThousandDocuments(b *testing.B) {
	folder := b.TempDir()
	for i := range 1000 {
		file := filepath.Join(folder, fmt.Sprintf("a%04d.qtype.yaml", i))
		if err := os.WriteFile(file, []byte(valid), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		documents, err := lint.Finder{Paths: []string{folder}}.Find(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		results := lint.Check(b.Context(), documents, loader.Options{})
		if len(results) != 1000 || len(lint.Diagnostics(results)) != 0 {
			b.Fatalf("%d results: %v", len(results), lint.Diagnostics(results))
		}
	}
}
