// Command generate writes the JSON schemas of documents, of test files and of evaluation files; see
// `make generate`.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/qtype-dev/qtype/internal/schemagen"
)

func main() {
	source := flag.String("spec", "spec", "folder of package spec, where the descriptions are read")
	out := flag.String("out", "schema.json", "file to write")
	embedded := flag.String("copy", "internal/authoring/schema.json.gz", "file to write with the same content, compressed, which programs have in them")
	tests := flag.String("tests", "internal/apptest/schema.json", "file to write for tests")
	evaluations := flag.String("evaluations", "internal/eval/schema.json", "file to write for evaluations")
	flag.Parse()
	if err := errors.Join(write(*out, *source, schemagen.Generate), write(*embedded, *source, compressed), write(*tests, *source, schemagen.GenerateTests),
		write(*evaluations, *source, schemagen.GenerateEvaluations)); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// compressed generates the schema of documents, compressed.
func compressed(dir string) ([]byte, error) {
	text, err := schemagen.Generate(dir)
	if err != nil {
		return nil, err
	}
	var zipped bytes.Buffer
	zip, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err == nil {
		_, err = zip.Write(text)
	}
	if err == nil {
		err = zip.Close()
	}
	return zipped.Bytes(), err
}

// write generates a schema and writes it to a file.
func write(file, dir string, generate func(dir string) ([]byte, error)) error {
	text, err := generate(dir)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
