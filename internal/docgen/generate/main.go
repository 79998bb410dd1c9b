// Command generate writes the reference pages: `make generate`.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/qtype-dev/qtype/internal/docgen"
)

func main() {
	root := flag.String("root", ".", "root folder of the module")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run writes all pages.
func run(root string) error {
	pages, err := docgen.Pages(context.Background(), root)
	if err != nil {
		return err
	}
	index, err := docgen.LLMs()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, docgen.LLMsFile), []byte(index), 0o644); err != nil {
		return err
	}
	folder := filepath.Join(root, docgen.Folder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
