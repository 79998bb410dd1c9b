package docgen_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/docgen"
	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// root is the root folder of the module.
const root = "../.."

func pages(t *testing.T) map[string]string {
	t.Helper()
	texts, err := docgen.Pages(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

func TestPages_UpToDate(t *testing.T) {
	texts := pages(t)
	files, err := filepath.Glob(filepath.Join(root, docgen.Folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if texts[filepath.Base(file)] == "" {
			t.Errorf("%s is not generated: delete it", file)
		}
	}
	for name, text := range texts {
		if got, err := os.ReadFile(filepath.Join(root, docgen.Folder, name)); err != nil || string(got) != text {
			t.Errorf("%s is not up to date (%v): run make generate", name, err)
		}
	}
}

// TestPages_AllKeys: every key of every definition of the schemas is in the table of
// its section.
func TestPages_AllKeys(t *testing.T) {
	section := regexp.MustCompile(`(?m)^## (.+)$`)
	sections := map[string]string{}
	for _, text := range pages(t) {
		at := section.FindAllStringSubmatchIndex(text, -1)
		for i, m := range at {
			end := len(text)
			if i+1 < len(at) {
				end = at[i+1][0]
			}
			sections[text[m[2]:m[3]]] += text[m[0]:end]
		}
	}
	tags := map[string]string{}
	for _, u := range spec.Unions() {
		for _, c := range u.Cases {
			entity := reflect.TypeOf(c.New()).Elem()
			tags[entity.Name()] = c.Tag
			for _, arguments := range argumentsOf(entity) {
				tags[arguments.Name()] = c.Tag
			}
		}
	}
	for _, file := range []string{"schema.json", "internal/apptest/schema.json"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		var schema struct {
			Definitions map[string]struct {
				Properties map[string]struct{ Deprecated bool }
			}
		}
		if err := json.Unmarshal(text, &schema); err != nil || len(schema.Definitions) < 5 {
			t.Fatalf("%s: %d definitions, %v", file, len(schema.Definitions), err)
		}
		for name, definition := range schema.Definitions {
			if isUnion(name) {
				continue
			}
			heading := name
			if tags[name] != "" {
				heading = tags[name]
			}
			for key := range definition.Properties {
				if text := sections[heading]; !strings.Contains(text, "\n| `"+key+"` |") && !strings.Contains(text, "Older name: `"+key+"`") {
					t.Errorf("%s: no page describes key %s of %s", file, key, heading)
				}
			}
		}
	}
}

// argumentsOf returns the structs of the arguments that an entity may have.
func argumentsOf(entity reflect.Type) []reflect.Type {
	var all []reflect.Type
	selects, _ := spec.SelectionOf(entity, "")
	for _, o := range selects.Options {
		selected, _ := spec.SelectionOf(entity, o.Name)
		for _, m := range selected.Mappings {
			if m.Into != nil {
				all = append(all, reflect.TypeOf(m.Into).Elem())
			}
		}
	}
	return all
}

// isUnion reports whether a definition is a union: its only key, type, is in the
// section of each case.
func isUnion(name string) bool {
	for _, u := range spec.Unions() {
		if u.Type.Name() == name {
			return true
		}
	}
	return false
}

// TestPages_Examples: every section has an example.
func TestPages_Examples(t *testing.T) {
	for name, text := range pages(t) {
		for part := range strings.SplitSeq(text, "\n## ") {
			if strings.Contains(part, "\n| Key |") && !strings.Contains(part, "\n```yaml") {
				heading, _, _ := strings.Cut(part, "\n")
				t.Errorf("%s: section %s has no example", name, heading)
			}
		}
	}
}

// TestPages_KeyExamples: every key has an example, in its row or in the block of its section.
// Rows of arguments, whose tables follow the block, are part of the section.
func TestPages_KeyExamples(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|.*$")
	for name, text := range pages(t) {
		for part := range strings.SplitSeq(text, "\n## ") {
			table, sample, ok := strings.Cut(part, "\n```yaml")
			if !ok {
				continue
			}
			sample, _, _ = strings.Cut(sample, "\n```")
			heading, _, _ := strings.Cut(part, "\n")
			for _, m := range row.FindAllStringSubmatch(table, -1) {
				shown := regexp.MustCompile(`(^|[\s{])` + m[1] + `:`).MatchString(sample)
				if !shown && !strings.Contains(m[0], "Example: `") {
					t.Errorf("%s: key %s of %s has no example: add one to testdata/keys.qtype.yaml", name, m[1], heading)
				}
			}
		}
	}
}

// TestPages_KeyDocuments: the documents that the examples of keys come from have no errors.
func TestPages_KeyDocuments(t *testing.T) {
	documents, err := lint.Finder{Paths: []string{"testdata"}}.Find(t.Context())
	testkit.Must(t, err)
	if len(documents) < 5 {
		t.Fatalf("%d documents", len(documents))
	}
	for _, d := range lint.Diagnostics(lint.Check(t.Context(), documents, loader.Options{})) {
		if d.Code != "QT915" { // unused
			t.Error(d)
		}
	}
}
