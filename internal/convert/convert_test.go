package convert_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
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

// TestFile_Goldens converts the files of testdata and compares the documents and
// diagnostics with the golden files next to them.
func TestFile_Goldens(t *testing.T) {
	for _, kind := range convert.Kinds() {
		files, err := filepath.Glob(filepath.Join("testdata", string(kind), "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.Contains(path, ".golden") || filepath.Ext(path) == "" { // folders have what the files name
				continue
			}
			t.Run(path, func(t *testing.T) { golden(t, kind, path) })
		}
	}
}

func golden(t *testing.T, kind convert.Kind, path string) {
	text, list := convert.File(t.Context(), kind, path)
	again, _ := convert.File(t.Context(), kind, path)
	if text != again {
		t.Error("the second conversion has another result")
	}
	var printed bytes.Buffer
	if err := diag.Text(&printed, list, diag.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	compare(t, path+".golden.yaml", text)
	compare(t, path+".golden.txt", printed.String())
	if text == "" {
		if list.Errors() == 0 {
			t.Error("no document and no error")
		}
		return
	}
	for _, d := range list {
		if d.Span.File == nil || d.Span.Start.Line == 0 {
			t.Errorf("%s has no position", d.Error())
		}
	}
	if problems := validateText(t, path+".golden.yaml", text); len(problems) > 0 {
		t.Errorf("the document is not valid:\n%s", problems)
	}
}

// credential is the environment, in which the variables of converted security schemes are set.
func credential(name string) (string, bool) {
	set := strings.HasPrefix(name, "SHOP_") || strings.HasPrefix(name, "OLD_")
	return "secret", set
}

// validateText validates a document and returns the diagnostics, warnings included, but for
// that of a memory that is small in the original too.
func validateText(t *testing.T, name, text string) string {
	t.Helper()
	loaded, problems := loader.LoadBytes(t.Context(), name, []byte(text), loader.Options{NoDotEnv: true, Lookup: credential})
	problems = append(problems, validate.Check(loaded.Document)...)
	problems = slices.DeleteFunc(problems, func(d diag.Diagnostic) bool { return d.Code == "QT443" })
	var printed bytes.Buffer
	if err := diag.Text(&printed, problems, diag.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	return printed.String()
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
