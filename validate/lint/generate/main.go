// Command generate writes the pages of docs/ about rules and diagnostics: `make
// generate`.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	out := flag.String("out", "docs", "folder to write to")
	flag.Parse()
	for name, page := range pages() {
		if err := write(filepath.Join(*out, name), page); err != nil {
			fmt.Fprintln(os.Stderr, "generate:", err)
			os.Exit(1)
		}
	}
}

// pages returns the generated pages by file name.
func pages() map[string]func() (string, error) {
	return map[string]func() (string, error){"rules.md": rulesPage, "diagnostics.md": diagnosticsPage}
}

func write(file string, page func() (string, error)) error {
	text, err := page()
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}
