package splitter_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// languages are the names that LlamaIndex's parsers have for the files of the corpus.
var languages = map[string]string{".go": "go", ".py": "python", ".js": "javascript", ".mjs": "javascript", ".ts": "typescript", ".tsx": "tsx"}

// sources returns programs: some of this repository, and LlamaIndex itself.
func sources(t *testing.T, environment string) []job {
	t.Helper()
	installed, err := filepath.Glob(filepath.Join(environment, "lib", "python3*", "site-packages", "llama_index", "core"))
	testkit.Must(t, err)
	var jobs []job
	for _, root := range append(installed, "../../spec", "../../steps", "../../internal/server", "../../internal/servertest") {
		testkit.Must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch language := languages[filepath.Ext(path)]; {
			case err != nil:
				return err
			case d.IsDir() && slices.Contains([]string{"node_modules", "dist", "testdata"}, d.Name()):
				return fs.SkipDir
			case language != "" && d.Type().IsRegular():
				jobs = append(jobs, job{Class: "CodeSplitter", Args: map[string]any{"language": language}, Text: testkit.ReadFile(t, path), name: path})
			}
			return nil
		}))
	}
	return jobs
}

// codeShares counts what two ways of dividing programs have in common.
type codeShares struct {
	files, chunks, theirChunks int
	equal                      int   // chunks that begin where one of LlamaIndex begins
	whole                      whole // of functions and types that fit in a chunk
	commented                  whole // of those with a comment above, with the comment
}

// whole counts parts of a text and those that are in one chunk.
type whole struct{ all, ours, theirs int }

// add counts a part.
func (w *whole) add(part [2]int, ours, theirs [][2]int) {
	in := func(chunks [][2]int) int {
		if slices.ContainsFunc(chunks, func(c [2]int) bool { return c[0] <= part[0] && part[1] <= c[1] }) {
			return 1
		}
		return 0
	}
	w.all, w.ours, w.theirs = w.all+1, w.ours+in(ours), w.theirs+in(theirs)
}

// missing reports whether more than two percent and two parts are divided.
func (w *whole) missing() bool { return (w.all-w.ours-2)*50 > w.all }

// ranges returns where chunks begin and end in a text, without white space around them.
func ranges(t *testing.T, text string, chunks []chunk) [][2]int {
	t.Helper()
	var all [][2]int
	at := 0
	for _, c := range chunks {
		body := strings.TrimSpace(c.Text)
		i := strings.Index(text[at:], body)
		if i < 0 {
			t.Fatalf("the text has no chunk %q", body)
		}
		all = append(all, [2]int{at + i, at + i + len(body)})
		at += i + len(body)
	}
	return all
}

// withComment returns a part of a text that begins with the comment above it.
func withComment(text string, part [2]int) [2]int {
	line := strings.LastIndexByte(text[:part[0]], '\n') + 1
	for line > 0 {
		above := strings.LastIndexByte(text[:line-1], '\n') + 1
		if content := strings.TrimSpace(text[above:line]); !strings.HasPrefix(content, "//") && !strings.HasPrefix(content, "#") && !strings.HasPrefix(content, "*") && !strings.HasPrefix(content, "/*") {
			break
		}
		line, part[0] = above, above+len(text[above:line])-len(strings.TrimLeft(text[above:line], " \t"))
	}
	return part
}

// TestLlamaIndex_Code measures how the chunks of CodeSplitter, which knows no language, differ
// from those of LlamaIndex, which parses the programs. docs/retrieval.md has the numbers.
func TestLlamaIndex_Code(t *testing.T) {
	testkit.SkipWithRace(t)
	const limit = 1500 // the default of max_chars
	shares := map[string]*codeShares{}
	llamaIndex(t, sources(t, llamaIndexFolder(t)), func(j job, a answer) {
		language := j.Args["language"].(string)
		if shares[language] == nil {
			shares[language] = &codeShares{}
		}
		s := shares[language]
		mine, other := ranges(t, j.Text, ours(t, j)), ranges(t, j.Text, theirs(a))
		s.files, s.chunks, s.theirChunks = s.files+1, s.chunks+len(mine), s.theirChunks+len(other)
		for _, c := range mine {
			if slices.ContainsFunc(other, func(o [2]int) bool { return o[0] == c[0] }) {
				s.equal++
			}
		}
		for _, d := range a.Definitions {
			if utf8.RuneCountInString(j.Text[d[0]:d[1]]) <= limit {
				s.whole.add(d, mine, other)
			}
			if c := withComment(j.Text, d); c != d && utf8.RuneCountInString(j.Text[c[0]:c[1]]) <= limit {
				s.commented.add(c, mine, other)
			}
		}
	})
	for language, s := range shares {
		t.Logf("%s: %+v", language, *s)
		if s.chunks > s.theirChunks || s.equal*4 < s.chunks || s.whole.missing() || s.commented.missing() {
			t.Errorf("%s: more chunks than LlamaIndex has, or more functions that are divided than measured before", language)
		}
	}
}
