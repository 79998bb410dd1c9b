package scaffold_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/scaffold"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// The skill has the reference and the examples, and its links lead to files of the skill or
// to addresses.
func TestWriteSkills(t *testing.T) {
	folder := t.TempDir()
	written, err := scaffold.WriteSkills(folder, false)
	testkit.Must(t, err)
	root := filepath.Join(folder, filepath.FromSlash(scaffold.SkillFolder))
	entry := testkit.ReadFile(t, filepath.Join(root, "SKILL.md"))
	if !regexp.MustCompile(`(?s)^---\nname: qtype\ndescription: \S[^\n]{50,900}\n---\n`).MatchString(entry) {
		t.Errorf("the entry page begins with %.200s", entry)
	}
	for _, m := range regexp.MustCompile("`references/([^`]*)`").FindAllStringSubmatch(entry, -1) {
		if _, err := os.Stat(filepath.Join(root, "references", m[1])); err != nil {
			t.Error(err)
		}
	}
	documents := 0
	for _, path := range written {
		text := testkit.ReadFile(t, path)
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+\.md)[^)]*\)`).FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		if strings.HasSuffix(path, ".qtype.yaml") {
			documents++
			if _, list := authoring.Check(t.Context(), path, authoring.Options{}); list.Errors() > 0 {
				t.Errorf("%s: %v", path, list.Err())
			}
		}
	}
	if documents < 5 {
		t.Errorf("only %d examples", documents)
	}
}

func TestWriteSkills_Existing(t *testing.T) {
	folder := t.TempDir()
	written, err := scaffold.WriteSkills(folder, false)
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(written[0], []byte("mine"), 0o600))
	var exists *scaffold.ExistsError
	if _, err := scaffold.WriteSkills(folder, false); !errors.As(err, &exists) {
		t.Errorf("it was overwritten: %v", err)
	}
	again, err := scaffold.WriteSkills(folder, true)
	testkit.Must(t, err)
	if len(again) != len(written) || testkit.ReadFile(t, written[0]) == "mine" {
		t.Errorf("%d files, want %d", len(again), len(written))
	}
}
