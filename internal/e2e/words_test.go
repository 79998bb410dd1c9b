package e2e_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// wordList is the parsed list of retired words.
type wordList struct {
	retired []phrase
	allowed []phrase
	skipped []string // globs of paths or of file names
	starts  map[string]start
}

// phrase is a sequence of words.
type phrase struct {
	words    []*regexp.Regexp
	standard string // the term to use instead
}

// start has the phrases whose first word matches a word.
type start struct{ retired, allowed []phrase }

// use is a retired word in a file.
type use struct {
	path     string
	line     int
	text     string
	standard string
}

func (u use) String() string {
	return fmt.Sprintf("%s:%d: %q: use %s", u.path, u.line, u.text, u.standard)
}

const wordsFile = "internal/e2e/testdata/retired_words.txt"

// TestWords reports retired words in the names and texts of all tracked files.
func TestWords(t *testing.T) {
	list := readWords(t)
	tracked, err := testkit.Command(t, "git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("git ls-files: %v", err)
	}
	for path := range strings.Lines(string(tracked)) {
		path = strings.TrimSpace(path)
		if list.skips(path) {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			continue // deleted but not committed
		}
		for _, u := range list.check(path, path) { // the name of the file
			t.Error(u)
		}
		if !isText(text) {
			continue
		}
		for _, u := range list.check(path, string(text)) {
			t.Error(u)
		}
	}
}

// sentence matches names of tests that are sentences: a name consists of the subject
// and, after an underscore, of the case, such as TestStepCache_ReplaysAnswer.
var sentence = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)(?:An?|The|What|Which|Who|Where|Nothing|Every|Each|Only|No)[A-Z][a-z]\w*)`)

// TestWords_TestNames reports tests whose names are sentences.
func TestWords_TestNames(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range sentence.FindAllSubmatch(text, -1) {
			t.Errorf("%s: %s: name the subject and, after an underscore, the case", path, m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWords_List checks the expressions with correct and retired uses.
func TestWords_List(t *testing.T) {
	list := readWords(t)
	for text, want := range map[string]string{
		"It tells whether the row is done.": "tells",
		"func (s *legKeeper) mark()":        "leg Keeper",
		"const longest_patience = 3":        "patience",
		"a tool of\n\t// its own":           "of its own",
		"strings.EqualFold(a, b)":           "",
		"a double quote, carefully":         "",
		"an illegal outstanding default":    "",
		"the standard folding range":        "",
	} {
		var got []string
		for _, u := range list.check("x.go", text) {
			got = append(got, u.text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// readWords parses the list of retired words.
func readWords(t *testing.T) wordList {
	t.Helper()
	text, err := os.ReadFile(wordsFile)
	if err != nil {
		t.Fatal(err)
	}
	list := wordList{starts: map[string]start{}}
	for line := range strings.Lines(string(text)) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch kind {
		case "word":
			words, standard, _ := strings.Cut(rest, "->")
			list.retired = append(list.retired, newPhrase(words, standard))
		case "allow":
			words, _, _ := strings.Cut(rest, "--")
			list.allowed = append(list.allowed, newPhrase(words, ""))
		case "skip":
			glob, _, _ := strings.Cut(rest, "--")
			list.skipped = append(list.skipped, strings.TrimSpace(glob))
		case "", "#":
		default:
			t.Fatalf("%s: unknown line %q", wordsFile, line)
		}
	}
	return list
}

func newPhrase(words, standard string) phrase {
	p := phrase{standard: strings.TrimSpace(standard)}
	for _, w := range strings.Fields(words) {
		p.words = append(p.words, regexp.MustCompile(`(?i)^(?:`+w+`)$`))
	}
	return p
}

func (l wordList) skips(path string) bool {
	return slices.ContainsFunc(l.skipped, func(glob string) bool {
		whole, _ := filepath.Match(glob, path)
		base, _ := filepath.Match(glob, filepath.Base(path))
		return whole || base
	})
}

// check returns the retired words in text, in its order.
func (l wordList) check(path, text string) []use {
	words := splitWords(text)
	var found []use
	for i := 0; i < len(words); i++ {
		s := l.startsWith(words[i].text)
		if n := longest(s.allowed, words[i:]); n > 0 {
			i += n - 1
			continue
		}
		for _, p := range s.retired {
			if n := p.match(words[i:]); n > 0 {
				var matched []string
				for _, w := range words[i : i+n] {
					matched = append(matched, w.text)
				}
				found = append(found, use{path, words[i].line, strings.Join(matched, " "), p.standard})
				break
			}
		}
	}
	return found
}

// startsWith returns the phrases that may start with a word. Texts have few
// distinct words, so that remembering them is much faster than expressions.
func (l wordList) startsWith(text string) start {
	s, ok := l.starts[text]
	if !ok {
		first := func(p phrase) bool { return p.words[0].MatchString(text) }
		s = start{filter(l.retired, first), filter(l.allowed, first)}
		l.starts[text] = s
	}
	return s
}

func filter(all []phrase, keep func(phrase) bool) []phrase {
	return slices.DeleteFunc(slices.Clone(all), func(p phrase) bool { return !keep(p) })
}

// longest returns the number of words of the longest phrase that matches, or 0.
func longest(phrases []phrase, words []word) int {
	n := 0
	for _, p := range phrases {
		n = max(n, p.match(words))
	}
	return n
}

// match returns the number of words of p if words start with it, else 0.
func (p phrase) match(words []word) int {
	if len(words) < len(p.words) {
		return 0
	}
	for i, expr := range p.words {
		if i > 0 && !words[i].joined || !expr.MatchString(words[i].text) {
			return 0
		}
	}
	return len(p.words)
}

// word is a word of a text.
type word struct {
	text   string
	line   int
	joined bool // no end of a sentence or of an expression precedes it
}

// splitWords returns the words of a text. Names in camelCase and with underscores
// are several words.
func splitWords(text string) []word {
	var words []word
	line, from, joined, before := 1, -1, true, ' '
	end := func(at int) {
		if from >= 0 {
			words = append(words, word{strings.Trim(text[from:at], "'"), line, joined})
			from, joined = -1, true
		}
	}
	for i, r := range text {
		isWord := unicode.IsLetter(r) || unicode.IsDigit(r) || r == '\'' && unicode.IsLetter(before)
		switch {
		case !isWord:
			end(i)
			joined = joined && strings.ContainsRune(" \t\n/#*>-_.,:`\"", r)
		case from < 0:
			from = i
		case unicode.IsUpper(r) && unicode.IsLower(before):
			end(i)
			from = i
		}
		if r == '\n' {
			line++
		}
		before = r
	}
	end(len(text))
	return words
}

// isText reports whether a file is UTF-8 text.
func isText(b []byte) bool {
	head := b[:min(len(b), 1<<13)]
	return !bytes.ContainsRune(head, 0) && (utf8.Valid(head) || len(head) < len(b))
}
