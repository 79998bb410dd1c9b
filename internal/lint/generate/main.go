// Command generate writes docs/rules.md: make generate.
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
	if err := write(filepath.Join(*out, "rules.md")); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// write writes the page of the rules to a file.
func write(file string) error {
	return os.WriteFile(file, []byte(rulesPage()), 0o644)
}
