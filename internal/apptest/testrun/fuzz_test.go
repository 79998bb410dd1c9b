package testrun_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/apptest/testrun"
	"github.com/qtype-dev/qtype/loader"
)

// FuzzLoad checks that no test file makes loading or running panic or hang.
func FuzzLoad(f *testing.F) {
	for _, rule := range apptest.Rules() {
		f.Add(rule.Wrong)
		f.Add(rule.Right)
	}
	f.Add("tests: [{name: a, flow: talk, turns: [{input: Hello, rows: 1, memory: [{id: chat_memory}], sent: [{id: writer, contains: [x]}]}, null]}, null]\nmodels: [null]\ntools: [{id: find_order, error: x}]\n")
	folder := f.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "app.qtype.yaml"), []byte(application), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "app.qtype-test.yaml")
		// Only the tests vary; the application is the same in every run.
		if err := os.Symlink(filepath.Join(folder, "app.qtype.yaml"), filepath.Join(filepath.Dir(path), "app.qtype.yaml")); err != nil {
			t.Skip(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		file, list := testrun.Load(t.Context(), path, loader.Options{}, open)
		if file == nil {
			if list.Errors() == 0 {
				t.Errorf("%q cannot be run, but there is no error", text)
			}
			return
		}
		for _, one := range file.Tests(nil) {
			file.Run(t.Context(), one)
		}
	})
}
