// Command generate writes the compressed form of models.jsonl that the program embeds. With
// the name of a file, it first writes models.jsonl from that file, in any format that
// package source reads.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"

	"github.com/qtype-dev/qtype/internal/catalogue/source"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run writes both files to the current folder.
func run(args []string) error {
	const name = "models.jsonl"
	from := name
	if len(args) > 0 {
		from = args[0]
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	rows, err := source.Read(text)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	lines, err := source.Lines(rows)
	if err != nil {
		return err
	}
	var zipped bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if _, err := zip.Write(lines); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	if err := os.WriteFile(name, lines, 0o644); err != nil {
		return err
	}
	return os.WriteFile(name+".gz", zipped.Bytes(), 0o644)
}
