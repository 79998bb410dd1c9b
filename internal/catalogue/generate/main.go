// Command generate writes the compressed form of models.jsonl that the program embeds. With
// the name of a file, it first writes models.jsonl from that file, in any format that
// package source reads.
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

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
	text, err := os.ReadFile(from) //nolint:gosec // a developer names the file
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
	if err := os.WriteFile(name, lines, 0o644); err != nil { //nolint:gosec // the name is a constant
		return err
	}
	zipped, err := archive(lines)
	if err != nil {
		return err
	}
	return os.WriteFile("models.zip", zipped, 0o644)
}

// archive packs lines into a file for each provider, and one for the servers, which have no kind.
func archive(lines []byte) ([]byte, error) {
	texts := map[string][]byte{}
	for line := range bytes.Lines(lines) {
		var of struct{ Provider, Kind string }
		if err := json.Unmarshal(line, &of); err != nil {
			return nil, err
		}
		name := of.Provider
		if of.Kind == "" {
			name = "servers"
		}
		texts[name] = append(texts[name], line...)
	}
	var zipped bytes.Buffer
	files := zip.NewWriter(&zipped)
	files.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		w, err := files.CreateHeader(&zip.FileHeader{Name: name + ".jsonl", Method: zip.Deflate}) // without a time: the archive is reproducible
		if err == nil {
			_, err = w.Write(texts[name])
		}
		if err != nil {
			return nil, err
		}
	}
	err := files.Close()
	return zipped.Bytes(), err
}
