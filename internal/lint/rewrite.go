package lint

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/source"
)

// replacement is an edit with byte offsets.
type replacement struct {
	start, end int
	text       string
	diagnostic int // the diagnostic that it fixes
}

// rewrite applies edits to a text and returns the number of fixed diagnostics. Of
// two overlapping edits the later one waits for the next pass; different edits of
// the same range are both refused. All other bytes remain unchanged.
func rewrite(text []byte, edits []edit) (fixed []byte, list int) {
	all := locate(text, edits)
	refused := conflicts(all)
	var out []byte
	done := 0
	counted := map[int]bool{}
	for i, r := range all {
		if refused[r.diagnostic] || i > 0 && sameEdit(r, all[i-1]) && done > 0 {
			continue
		}
		out = append(append(out, text[done:r.start]...), r.text...)
		done = r.end
		counted[r.diagnostic] = true
	}
	return append(out, text[done:]...), len(counted)
}

// sameEdit reports whether two replacements are equal.
func sameEdit(a, b replacement) bool {
	return a.start == b.start && a.end == b.end && a.text == b.text
}

// locate converts edits to replacements in the order of the text. It leaves out
// diagnostics with an edit that does not match the text.
func locate(text []byte, edits []edit) []replacement {
	skip := len(text) - len(bytes.TrimPrefix(text, []byte("\ufeff")))
	starts := lineStarts(text[skip:])
	var all []replacement
	lost := map[int]bool{}
	for _, e := range edits {
		start, ok := offset(text[skip:], starts, e.fix.Span.File, e.fix.Span.Start)
		end, ok2 := offset(text[skip:], starts, e.fix.Span.File, e.fix.Span.End)
		if !ok || !ok2 || end < start {
			lost[e.diagnostic] = true
			continue
		}
		all = append(all, replacement{skip + start, skip + end, e.fix.NewText, e.diagnostic})
	}
	all = slices.DeleteFunc(all, func(r replacement) bool { return lost[r.diagnostic] })
	slices.SortStableFunc(all, func(a, b replacement) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(a.text, b.text))
	})
	return all
}

func lineStarts(text []byte) []int {
	starts := []int{0}
	for i, c := range text {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// offset converts a position of a checked file to an offset in the text. It returns
// false if the line has changed. The position after the last line is the end.
func offset(text []byte, starts []int, f *source.File, at source.Pos) (int, bool) {
	if at.Line == len(starts)+1 && at.Column == 1 {
		return len(text), true
	}
	if at.Line < 1 || at.Line > len(starts) {
		return 0, false
	}
	start := starts[at.Line-1]
	line, _, _ := bytes.Cut(text[start:], []byte{'\n'})
	line = bytes.TrimSuffix(line, []byte{'\r'})
	if at.Column == 1 {
		return start, true
	}
	if string(line) != f.Line(at.Line) {
		return 0, false
	}
	n := 0
	for column := 1; column < at.Column; column++ {
		if n >= len(line) {
			return 0, false
		}
		_, size := utf8.DecodeRune(line[n:])
		n += size
	}
	return start + n, true
}

// conflicts returns the diagnostics whose edits have to wait or are refused.
func conflicts(all []replacement) map[int]bool {
	refused := map[int]bool{}
	last := -1 // the last replacement that is not refused
	for i, r := range all {
		switch {
		case last < 0 || r.start > all[last].end || r.start == all[last].end && r.start < r.end && all[last].start < all[last].end:
		case sameEdit(r, all[last]):
			continue
		case r.start == all[last].start && r.end == all[last].end:
			refused[all[last].diagnostic] = true
			refused[r.diagnostic] = true
			continue
		default:
			refused[r.diagnostic] = true
			continue
		}
		last = i
	}
	return refused
}

// Formatter changes the layout of a YAML document, and nothing else.
type Formatter func(text string) (string, error)

// byteOrderMark may precede a text, and is kept.
const byteOrderMark = "\ufeff"

// Reformat formats the documents of the finder. It returns the changed documents, without
// writing them, and an error for each file that cannot be read or formatted. Secrets of the
// changes are known, so that Diff hides them. Markdown pages and URLs are errors.
func Reformat(ctx context.Context, find Finder, format Formatter) (changes []Change, failed []error, err error) {
	documents, err := find.Find(ctx)
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for _, d := range documents {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		real := realPath(d.Path)
		if seen[real] {
			continue
		}
		seen[real] = true
		c, err := reformatFile(ctx, d, real, format)
		switch {
		case err != nil:
			failed = append(failed, err)
		case c != nil:
			changes = append(changes, *c)
		}
	}
	return changes, failed, nil
}

// reformatFile formats one file; the change is nil if it is formatted already.
func reformatFile(ctx context.Context, d Document, real string, format Formatter) (*Change, error) {
	switch {
	case isRemote(d.Path):
		return nil, fmt.Errorf("%s is not a local file: only local files are formatted", remotefs.Redacted(d.Path))
	case isPage(d.Path):
		return nil, fmt.Errorf("%s is a Markdown page: only YAML files are formatted", d.Path)
	}
	text, err := os.ReadFile(real)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Path, cause(err))
	}
	made, err := FormatText(d.Path, text, format)
	if err != nil || bytes.Equal(made, text) {
		return nil, err
	}
	c := &Change{Path: d.Path, real: real, old: text, new: made}
	c.oldHidden, c.newHidden = secretsOf(ctx, d.Path, text), secretsOf(ctx, d.Path, made)
	return c, nil
}

// FormatText formats the text of a document, which errors name.
func FormatText(name string, text []byte, format Formatter) ([]byte, error) {
	rest, marked := strings.CutPrefix(string(text), byteOrderMark)
	made, err := format(rest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if marked {
		made = byteOrderMark + made
	}
	return []byte(made), nil
}

// NewChange is the change of a text that is in no file, such as standard input; only its
// Diff can be used.
func NewChange(ctx context.Context, name string, before, after []byte) Change {
	return Change{Path: name, old: before, new: after, oldHidden: secretsOf(ctx, name, before), newHidden: secretsOf(ctx, name, after)}
}

// secretsOf returns the positions of the secrets of a document. Includes are not read.
func secretsOf(ctx context.Context, name string, text []byte) []source.Span {
	var hidden []source.Span
	loaded, _ := loader.LoadBytes(ctx, name, text, loader.Options{NoDotEnv: true})
	for _, f := range loaded.Files {
		if f.Path == name {
			hidden = append(hidden, f.Hidden()...)
		}
	}
	return hidden
}
