package lsp

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/spec/source"
)

// TestOutlineAgreesWithYAML compares outlines of good documents with the trees
// of the YAML library: the same keys at the same places, the same number of items.
func TestOutlineAgreesWithYAML(t *testing.T) {
	for file, text := range samples(t) {
		tree, err := treeOfYAML(text)
		if err != nil || tree == nil || len(tree.Content) == 0 {
			continue
		}
		agree(t, file, newLines(text), parseOutline(text).root, tree.Content[0])
	}
}

func agree(t *testing.T, file string, l *lineIndex, n *node, y *yaml.Node) {
	t.Helper()
	if y.Kind == yaml.AliasNode {
		return
	}
	want := map[yaml.Kind]kind{yaml.ScalarNode: scalar, yaml.MappingNode: mapping, yaml.SequenceNode: sequence}[y.Kind]
	if n.kind != want && !(n.kind == nothing && y.Value == "") {
		t.Errorf("%s:%d:%d: the outline has kind %d, want %d", file, y.Line, y.Column, n.kind, want)
		return
	}
	switch y.Kind {
	case yaml.MappingNode:
		if len(n.pairs) != len(y.Content)/2 {
			t.Errorf("%s:%d: the outline has %d keys, want %d", file, y.Line, len(n.pairs), len(y.Content)/2)
			return
		}
		for i, p := range n.pairs {
			key := y.Content[2*i]
			if at := l.byteAt(source.Pos{Line: key.Line, Column: key.Column}); p.key != key.Value || at != p.start {
				t.Errorf("%s:%d:%d: the outline has the key %q at %d, want %q at %d", file, key.Line, key.Column, p.key, p.start, key.Value, at)
			}
			agree(t, file, l, p.value, y.Content[2*i+1])
		}
	case yaml.SequenceNode:
		if len(n.items) != len(y.Content) {
			t.Errorf("%s:%d: the outline has %d items, want %d", file, y.Line, len(n.items), len(y.Content))
			return
		}
		for i, item := range n.items {
			agree(t, file, l, item, y.Content[i])
		}
	}
}

// TestOutlineOfAnything: no text makes it panic or point outside of itself.
func TestOutlineOfAnything(t *testing.T) {
	var all []string
	for _, text := range samples(t) {
		all = append(all, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom(all).Draw(t, "document")
		if rapid.Bool().Draw(t, "anything") {
			text = rapid.StringOfN(rapid.SampledFrom([]rune("ab: -\n{}[],\"'#|>&*!\t é😀\ufeff$?%")), 0, 80, -1).Draw(t, "text")
		}
		from := rapid.IntRange(0, len(text)).Draw(t, "from")
		to := rapid.IntRange(from, len(text)).Draw(t, "to")
		text = text[:from] + rapid.SampledFrom([]string{"", cursor, "{", "[", "\"", "'", "- ", "x: ", "\n", "|"}).Draw(t, "typed") + text[to:]
		visit(parseOutline(text).root, func(n *node) {
			if n.start < 0 || n.start > n.end || n.end > len(text) {
				t.Fatalf("a value from %d to %d in a text of %d bytes", n.start, n.end, len(text))
			}
			for _, p := range n.pairs {
				if p.start < 0 || p.start > p.end || p.end > len(text) {
					t.Fatalf("the key %q from %d to %d", p.key, p.start, p.end)
				}
			}
		})
		made := indent(text)
		if !equalIgnoringSpace(made, text) {
			t.Fatalf("indenting took something away from %q: %q", text, made)
		}
	})
}

func TestDeepNestingIsBounded(t *testing.T) {
	for _, text := range []string{strings.Repeat("[", 100_000), strings.Repeat("{a: ", 100_000), strings.Repeat("- ", 100_000), strings.Repeat("a:\n ", 3)} {
		deep := 0
		var walk func(*node, int)
		walk = func(n *node, depth int) {
			deep = max(deep, depth)
			for _, i := range n.items {
				walk(i, depth+1)
			}
			for _, p := range n.pairs {
				walk(p.value, depth+1)
			}
		}
		walk(parseOutline(text).root, 0)
		if deep > 2*maxLevels {
			t.Errorf("%.20s… is %d levels deep", text, deep)
		}
	}
}

func TestPositions(t *testing.T) {
	text := "a\r\né😀b\rc\n\n日"
	l := newLines(text)
	for _, c := range []struct {
		offset int
		at     position
	}{{0, position{0, 0}}, {1, position{0, 1}}, {3, position{1, 0}}, {5, position{1, 1}}, {9, position{1, 3}}, {10, position{1, 4}}, {11, position{2, 0}}, {13, position{3, 0}}, {14, position{4, 0}}, {17, position{4, 1}}} {
		if got := l.position(c.offset); got != c.at {
			t.Errorf("byte %d is at %v, want %v", c.offset, got, c.at)
		}
		if got := l.offset(c.at); got != c.offset {
			t.Errorf("%v is byte %d, want %d", c.at, got, c.offset)
		}
	}
	for _, c := range []struct {
		at   position
		want int
	}{{position{0, 99}, 1}, {position{99, 0}, len(text)}, {position{1, 2}, 5}, {position{-1, 0}, 0}, {position{0, -5}, 0}} {
		if got := l.offset(c.at); got != c.want {
			t.Errorf("%v is byte %d, want %d", c.at, got, c.want)
		}
	}
	marked := newLines(byteOrderMark + "ab\nc")
	if marked.offset(position{0, 2}) != 1 || marked.position(1) != (position{0, 2}) || marked.position(3) != (position{1, 0}) {
		t.Error("a byte order mark is one unit of the first line alone")
	}
}

// TestEditsOfAnyKind compares incremental edits with the same on the text.
func TestEditsOfAnyKind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runes := rapid.SliceOf(rapid.SampledFrom([]rune("ab\n\ré😀日")))
		text := string(runes.Draw(t, "text"))
		d := newDocument("u", "p", 1, "yaml", text)
		from := rapid.IntRange(0, len([]rune(text))).Draw(t, "from")
		to := rapid.IntRange(from, len([]rune(text))).Draw(t, "to")
		typed := string(runes.Draw(t, "typed"))
		start, end := len(string([]rune(text)[:from])), len(string([]rune(text)[:to]))
		if start > 0 && start < len(text) && text[start-1:start+1] == "\r\n" || end > 0 && end < len(text) && text[end-1:end+1] == "\r\n" {
			return // no place of the protocol is between the two
		}
		r := d.span(start, end)
		next, err := d.edit(2, []change{{Range: &r, Text: typed}})
		if err != nil || next.text != text[:start]+typed+text[end:] {
			t.Fatalf("%v: %q with %q at %v is %q", err, text, typed, r, next.text)
		}
	})
}
