// Command generate writes the JSON schema of a document: `make generate`.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/qtype-dev/qtype/schema"
)

func main() {
	source := flag.String("spec", "spec", "folder of package spec, where the descriptions are read")
	out := flag.String("out", "schema.json", "file to write")
	flag.Parse()
	if err := write(*out, *source); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// write makes the schema of the structs in dir and puts it into file.
func write(file, dir string) error {
	text, err := schema.Generate(dir)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
