// Command build writes the playground page to a folder: the page, the program that is
// compiled for browsers, its JSON schema, the vocabularies of the token encodings and the
// examples. Any server can serve the folder, and the page also opens from it.
//
//	go run ./internal/playground/build FOLDER
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/examples"
	"github.com/qtype-dev/qtype/internal/playground"
	"github.com/qtype-dev/qtype/internal/playground/web"
	"github.com/qtype-dev/qtype/internal/tokenizer/vocabularies"
)

// maxProgram is the most bytes that the compressed program may have. It shows a library that came in by accident.
const maxProgram = 4_700_000

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: go run ./internal/playground/build FOLDER")
	}
	if err := build(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// build writes the page to a folder.
func build(folder string) error {
	files, err := contents()
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := write(folder, name, content); err != nil {
			return err
		}
	}
	fmt.Printf("%s: the program has %d bytes compressed\n", folder, len(files["qtype.wasm.gz"]))
	if n := len(files["qtype.wasm.gz"]); n > maxProgram {
		return fmt.Errorf("the compressed program has %d bytes, more than %d", n, maxProgram)
	}
	return nil
}

func write(folder, name string, content []byte) error {
	target := filepath.Join(folder, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // a folder for a server of files
		return err
	}
	return os.WriteFile(target, content, 0o644) //nolint:gosec // likewise
}

// contents returns the files of the page by name.
func contents() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, add := range []func(map[string][]byte) error{addProgram, addWorker, addSchema, addExamples, addVocabularies, addPage} {
		if err := add(files); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// addProgram compiles the program. Without inlining it is smaller.
func addProgram(files map[string][]byte) error {
	out := filepath.Join(os.TempDir(), fmt.Sprintf("qtype-playground-%d.wasm", os.Getpid()))
	defer func() { _ = os.Remove(out) }()
	c := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-gcflags=all=-l", "-ldflags=-s -w", "-o", out, "github.com/qtype-dev/qtype/internal/playground/wasm") //nolint:gosec // constants and a path
	c.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if message, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("compile the program: %w\n%s", err, message)
	}
	program, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	return addCompressed(files, "qtype.wasm", program)
}

// addWorker adds the script of the worker, after the script of Go's distribution that the
// program needs: a worker of a page from a folder cannot load another script.
func addWorker(files map[string][]byte) error {
	root, err := exec.CommandContext(context.Background(), "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find Go: %w", err)
	}
	content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return err
	}
	script, err := fs.ReadFile(web.Files, "dist/worker.js")
	add(files, "worker.js", slices.Concat(content, []byte("\n"), script))
	return err
}

func addSchema(files map[string][]byte) error {
	content, err := os.ReadFile("schema.json")
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("run the command in the folder of the module")
	}
	if err != nil {
		return err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, content); err != nil {
		return err
	}
	return addCompressed(files, "schema.json", compact.Bytes())
}

func addExamples(files map[string][]byte) error {
	all, err := playground.Examples(examples.Files)
	if err != nil {
		return err
	}
	content, err := json.Marshal(all)
	if err != nil {
		return err
	}
	add(files, "examples.json", content)
	return nil
}

func addVocabularies(files map[string][]byte) error {
	for name, content := range vocabularies.Files {
		if err := addCompressed(files, path.Join("vocabularies", name), []byte(content)); err != nil {
			return err
		}
	}
	return nil
}

func addPage(files map[string][]byte) error {
	return fs.WalkDir(web.Files, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(web.Files, name)
		if path.Base(name) != "worker.js" {
			files[path.Base(name)] = content
		}
		return err
	})
}

// addCompressed adds a file with the ending .gz: the page decompresses it, so that no server
// addCompressed adds a file as compressed by the program gzip, whose output is about one percent
// smaller than that of Go's packages.
func addCompressed(files map[string][]byte, name string, content []byte) error {
	c := exec.CommandContext(context.Background(), "gzip", "-9", "-n")
	c.Stdin = bytes.NewReader(content)
	packed, err := c.Output()
	if err != nil {
		return fmt.Errorf("compress %s with gzip: %w", name, err)
	}
	add(files, name+".gz", packed)
	return nil
}

// add adds a file that the page reads, and a script that contains it for a page that was
// opened from a folder, which may not read files.
func add(files map[string][]byte, name string, content []byte) {
	files[name] = content
	files["local/"+name+".js"] = fmt.Appendf(nil, "(globalThis.playgroundFiles ??= {})[%q] = %q\n", name, base64.StdEncoding.EncodeToString(content))
}
