package convert_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "rewrite the goldens")

// TestGoldens converts every file of testdata. Beside each stands what is made of
// it, and what is told.
func TestGoldens(t *testing.T) {
	for _, kind := range convert.Kinds() {
		files, err := filepath.Glob(filepath.Join("testdata", string(kind), "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.Contains(path, ".golden") {
				continue
			}
			t.Run(path, func(t *testing.T) { golden(t, kind, path) })
		}
	}
}

func golden(t *testing.T, kind convert.Kind, path string) {
	text, told := convert.File(t.Context(), kind, path)
	again, _ := convert.File(t.Context(), kind, path)
	if text != again {
		t.Error("the same file gives another text the second time")
	}
	var said bytes.Buffer
	if err := diag.Text(&said, told, diag.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	compare(t, path+".golden.yaml", text)
	compare(t, path+".golden.txt", said.String())
	if text == "" {
		if told.Errors() == 0 {
			t.Error("nothing is made of the file, and nobody says why")
		}
		return
	}
	for _, d := range told {
		if d.Span.File == nil || d.Span.Start.Line == 0 {
			t.Errorf("%s has no place", d.Error())
		}
	}
	if faults := check(t, path+".golden.yaml", text); len(faults) > 0 {
		t.Errorf("what is made of the file is not valid:\n%s", faults)
	}
}

// check validates a document; warnings count.
func check(t *testing.T, name, text string) string {
	t.Helper()
	loaded, faults := loader.LoadBytes(t.Context(), name, []byte(text), loader.Options{NoDotEnv: true, Lookup: func(string) (string, bool) { return "", false }})
	faults = append(faults, validate.Check(loaded.Document)...)
	var said bytes.Buffer
	if err := diag.Text(&said, faults, diag.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	return said.String()
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs; got:\n%s", path, got)
	}
}
