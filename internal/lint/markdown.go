package lint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec"
)

// block is the content of a fence.
type block struct {
	from, to int // line indexes; to is exclusive
}

// page is a Markdown page.
type page struct {
	text   []byte
	blocks []block // the whole documents in it
}

// The limits of a page. Each block is read with an empty line for every line before
// it, so the limits of lines and blocks multiply.
const (
	maxPage   = 1 << 20 // bytes
	maxLines  = 20_000
	maxBlocks = 500
)

// errPage reports a file that is not a page. The loader reads it next and reports
// why.
var errPage = errors.New("not a page")

// limitError reports that a page exceeds a limit.
type limitError struct{ text string }

// Error returns the message as a predicate of the page.
func (e *limitError) Error() string { return e.text }

// readPage reads a Markdown page from in, or from its file if in is nil.
func readPage(in io.ReadCloser, path string) (*page, error) {
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
	if len(text) > maxPage {
		return nil, &limitError{"is larger than 1 MiB, the limit for a page"}
	}
	if bytes.Count(text, []byte{'\n'}) > maxLines {
		return nil, &limitError{"has more than 20,000 lines, the limit for a page"}
	}
	if bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
		return nil, errPage
	}
	p := &page{text, blocksOf(text)}
	if len(p.blocks) > maxBlocks {
		return nil, &limitError{fmt.Sprintf("has more than %d documents, the limit for a page", maxBlocks)}
	}
	return p, nil
}

// A fence may be indented, and its info string starts with the language. Blocks
// with qtype:ignore in the info string are skipped.
var (
	opening = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^([ \t]*)(`{3,}|~{3,})[ \t]*([^`]*)$") })
	topKey  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^["']?([A-Za-z_$]+)["']?[ \t]*:([ \t]|$)`) })
)

// blocksOf returns the fenced YAML blocks that are whole documents.
func blocksOf(page []byte) []block {
	var found []block
	lines := strings.Split(string(page), "\n")
	for i := 0; i < len(lines); i++ {
		open := opening().FindStringSubmatch(strings.TrimRight(lines[i], "\r"))
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

// closing returns the index of the line that ends a fence, the end of the page for
// an unclosed one.
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

// isDocument reports whether lines are a whole application: they have an id and a
// section at the margin, but no type, which only parts of an application have.
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
		if key := topKey().FindStringSubmatch(bare); key != nil && len(line)-len(bare) == margin {
			keys[key[1]] = true
		}
	}
	return keys["id"] && !keys["type"] && slices.ContainsFunc(sections(), func(s string) bool { return keys[s] })
}

// sections returns the list keys of an application.
func sections() []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[spec.Application]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); f.Type.Kind() == reflect.Slice && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// blank returns the page with all lines but the n-th block, counted from 1,
// replaced by empty ones, so that positions stay the same.
func (p *page) blank(n int) []byte {
	if n > len(p.blocks) {
		return nil // the page has changed; the next check finds it
	}
	b := p.blocks[n-1]
	rest := p.text
	for range b.from {
		_, rest, _ = bytes.Cut(rest, []byte{'\n'})
	}
	text := bytes.Repeat([]byte{'\n'}, b.from)
	for range b.to - b.from {
		line, after, found := bytes.Cut(rest, []byte{'\n'})
		text = append(text, line...)
		if found {
			text = append(text, '\n')
		}
		rest = after
	}
	return text
}

// pages caches the pages of a check.
type pages struct {
	mu   sync.Mutex
	read map[string]func() (*page, error)
}

// get returns a cached page, or reads it.
func (p *pages) get(path string, read func() (*page, error)) (*page, error) {
	p.mu.Lock()
	if p.read == nil {
		p.read = map[string]func() (*page, error){}
	}
	once, known := p.read[path]
	if !known {
		once = sync.OnceValues(read)
		p.read[path] = once
	}
	p.mu.Unlock()
	return once()
}
