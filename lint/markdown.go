package lint

import (
	"bytes"
	"errors"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec"
)

// block is the inside of a fence, by the indexes of its lines.
type block struct {
	from, to int // up to but without to
}

// maxPage is the most bytes of a page, as loader.Limits has it for a document.
const maxPage = 4 << 20

var errPage = errors.New("not a page")

// readPage reads a Markdown page from in, else from its file. What is too large
// or no text is an error: the loader, which gets it next, says so in full.
func readPage(in io.ReadCloser, path string) ([]byte, error) {
	if in == nil {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return nil, errPage
		}
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		in = file
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxPage+1))
	if err != nil {
		return nil, err
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if len(text) > maxPage || bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
		return nil, errPage
	}
	return text, nil
}

// The parts of a page that matter. A fence may be indented, and its info string
// starts with the language; a block whose info string holds qtype:ignore is left alone.
var (
	opening = regexp.MustCompile("^([ \t]*)(`{3,}|~{3,})[ \t]*([^`]*)$")
	topKey  = regexp.MustCompile(`^["']?([A-Za-z_$]+)["']?[ \t]*:([ \t]|$)`)
)

// blocksOf finds the fenced blocks of YAML that are whole documents.
func blocksOf(page []byte) []block {
	var found []block
	lines := strings.Split(string(page), "\n")
	for i := 0; i < len(lines); i++ {
		open := opening.FindStringSubmatch(strings.TrimRight(lines[i], "\r"))
		if open == nil {
			continue
		}
		b := block{from: i + 1, to: closing(lines, i+1, open[2])}
		if isYAML(open[3]) && isDocument(lines[b.from:b.to]) {
			found = append(found, b)
		}
		i = b.to
	}
	return found
}

// closing is the index of the line that ends a fence; a fence that nothing ends
// goes on to the end of the page.
func closing(lines []string, from int, fence string) int {
	for i := from; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if len(line) >= len(fence) && strings.Trim(line, fence[:1]) == "" {
			return i
		}
	}
	return len(lines)
}

func isYAML(info string) bool {
	words := strings.Fields(strings.ToLower(info))
	return len(words) > 0 && (words[0] == "yaml" || words[0] == "yml") && !slices.Contains(words, "qtype:ignore")
}

// isDocument tells whether the lines are a whole application: they have an id
// and a section at the left edge, and no type, which parts of one have.
func isDocument(lines []string) bool {
	margin := -1
	keys := map[string]bool{}
	for _, line := range lines {
		bare := strings.TrimLeft(line, " ")
		if text := strings.TrimSpace(bare); text == "" || text[0] == '#' {
			continue
		}
		if margin < 0 {
			margin = len(line) - len(bare)
		}
		if key := topKey.FindStringSubmatch(bare); key != nil && len(line)-len(bare) == margin {
			keys[key[1]] = true
		}
	}
	return keys["id"] && !keys["type"] && slices.ContainsFunc(sections(), func(s string) bool { return keys[s] })
}

// sections are the keys that only an application has: its lists.
func sections() []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[spec.Application]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); f.Type.Kind() == reflect.Slice && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// blank is the page with nothing but the n-th block, counted from 1, so that
// every place in the block is its place in the page.
func blank(page []byte, blocks []block, n int) []byte {
	if n > len(blocks) {
		return nil // the page has changed; the next check sees it as it is
	}
	lines := bytes.SplitAfter(page, []byte{'\n'})
	b := blocks[n-1]
	text := bytes.Repeat([]byte{'\n'}, b.from)
	for _, line := range lines[b.from:b.to] {
		text = append(text, line...)
	}
	return text
}
