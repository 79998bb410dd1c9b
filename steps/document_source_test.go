package steps_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// TestDocumentSource: one row for each document with all variables of the row, a failed
// one for a file that cannot be read, and inputs as arguments.
func TestDocumentSource(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.md": "# Pancakes", "b.md": "# Soup", "c.bin": "\x00\x01\xff\xfe\x80"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	l := declare(t, nil, "topic: text", "input_dir: text", "doc: RAGDocument")
	source := func(args map[string]any, inputs ...string) steps.Runner {
		return build(t, &spec.DocumentSource{StepBase: l.base("read", inputs, []string{"doc"}), ReaderModule: "directory", Args: args}, &steps.Env{Slots: l})
	}
	rows := driveRows(t, source(map[string]any{"input_dir": dir}), l.row(map[string]any{"topic": "food"}))
	if len(rows) != 3 || rows[2].Err == nil || !strings.Contains(rows[2].Err.Error(), "c.bin") {
		t.Fatalf("got %v", rows)
	}
	doc, ok := rows[0].Values[2].(*value.Record)
	if !ok || doc.Type() != "RAGDocument" || rows[0].Values[0] != "food" {
		t.Fatalf("got %v", rows[0].Values)
	}
	fields := map[string]any{}
	for name, v := range doc.All() {
		fields[name] = v
	}
	metadata := fields["metadata"].(*value.Record)
	if names := metadata.Names(); len(names) != 6 || !slices.Contains(names, "last_modified_date") {
		t.Errorf("metadata has %v", names)
	}
	if path, _ := metadata.Get("file_path"); path != filepath.Join(dir, "a.md") {
		t.Errorf("file_path is %v", path)
	}
	if d := cmp.Diff([]any{"# Pancakes", "a.md", nil, "text"}, []any{fields["content"], fields["file_name"], fields["uri"], fields["type"]}); d != "" {
		t.Error(d)
	}
	byInput := source(map[string]any{"required_exts": []any{".md"}}, "input_dir", "topic")
	if got := driveRows(t, byInput, l.row(map[string]any{"input_dir": dir})); len(got) != 2 || got[0].Err != nil {
		t.Errorf("by an input: %v", got)
	}
	if got := drive(t, l, byInput, l.row(nil)); len(got) != 1 || !strings.Contains(got[0], "neither input_dir nor input_files is set") {
		t.Errorf("by an unset input: %v", got)
	}
	if got := drive(t, l, byInput, l.row(map[string]any{"input_dir": filepath.Join(dir, "none")})); len(got) != 1 || !strings.Contains(got[0], "does not exist") {
		t.Errorf("a missing folder: %v", got)
	}
	_, err := steps.Build(&spec.DocumentSource{StepBase: l.base("read", nil, []string{"doc"}), ReaderModule: "directory", Args: map[string]any{"input_dri": dir}}, &steps.Env{Slots: l})
	if err == nil || !strings.Contains(err.Error(), "input_dri: unknown key") {
		t.Errorf("got %v", err)
	}
}
