package lsp

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/lsp/protocol"
)

func pos(line, character int) protocol.Position {
	return protocol.Position{Line: line, Character: character}
}

func TestLineIndex(t *testing.T) {
	text := "a\r\né😀b\rc\n\n日"
	l := newLineIndex(text)
	for _, c := range []struct {
		offset int
		at     protocol.Position
	}{{0, pos(0, 0)}, {1, pos(0, 1)}, {3, pos(1, 0)}, {5, pos(1, 1)}, {9, pos(1, 3)}, {10, pos(1, 4)}, {11, pos(2, 0)}, {13, pos(3, 0)}, {14, pos(4, 0)}, {17, pos(4, 1)}} {
		if got := l.position(c.offset); got != c.at {
			t.Errorf("offset %d converts to %v, want %v", c.offset, got, c.at)
		}
		if got := l.offset(c.at); got != c.offset {
			t.Errorf("%v converts to offset %d, want %d", c.at, got, c.offset)
		}
	}
	for _, c := range []struct {
		at   protocol.Position
		want int
	}{{pos(0, 99), 1}, {pos(99, 0), len(text)}, {pos(1, 2), 5}, {pos(-1, 0), 0}, {pos(0, -5), 0}} {
		if got := l.offset(c.at); got != c.want {
			t.Errorf("%v converts to offset %d, want %d", c.at, got, c.want)
		}
	}
	marked := newLineIndex(byteOrderMark + "ab\nc")
	if marked.offset(pos(0, 2)) != 1 || marked.position(1) != (pos(0, 2)) || marked.position(3) != (pos(1, 0)) {
		t.Error("a byte order mark is one unit of the first line alone")
	}
}

// TestDocument_Edit compares incremental edits with the same edits of the text.
func TestDocument_Edit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runes := rapid.SliceOf(rapid.SampledFrom([]rune("ab\n\ré😀日")))
		text := string(runes.Draw(t, "text"))
		d := newDocument("u", "p", 1, "yaml", text)
		from := rapid.IntRange(0, len([]rune(text))).Draw(t, "from")
		to := rapid.IntRange(from, len([]rune(text))).Draw(t, "to")
		typed := string(runes.Draw(t, "typed"))
		start, end := len(string([]rune(text)[:from])), len(string([]rune(text)[:to]))
		if start > 0 && start < len(text) && text[start-1:start+1] == "\r\n" || end > 0 && end < len(text) && text[end-1:end+1] == "\r\n" {
			return // the protocol has no position between the two
		}
		r := d.rangeOf(start, end)
		next, err := d.edit(2, []protocol.TextDocumentContentChangeEvent{{Range: &r, Text: typed}})
		if err != nil || next.text != text[:start]+typed+text[end:] {
			t.Fatalf("%v: %q with %q at %v is %q", err, text, typed, r, next.text)
		}
	})
}
