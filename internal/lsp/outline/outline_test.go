package outline_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/lsp/lsptest"
	"github.com/qtype-dev/qtype/internal/lsp/outline"
)

// TestParse_AgreesWithYAML compares outlines of valid documents with the trees of
// the YAML library: the same keys at the same positions, the same number of items.
func TestParse_AgreesWithYAML(t *testing.T) {
	for file, text := range lsptest.Documents(t) {
		in, err := yaml.NewLoader(strings.NewReader(text), yaml.WithUniqueKeys(false))
		if err != nil {
			continue
		}
		var tree, second yaml.Node
		if in.Load(&tree) != nil || in.Load(&second) == nil || len(tree.Content) == 0 {
			continue
		}
		text = strings.TrimPrefix(text, "\ufeff")
		compare(t, file, text, outline.Parse(text), tree.Content[0])
	}
}

func compare(t *testing.T, file, text string, n *outline.Node, y *yaml.Node) {
	t.Helper()
	if y.Kind == yaml.AliasNode {
		return
	}
	want := map[yaml.Kind]outline.Kind{yaml.ScalarNode: outline.Scalar, yaml.MappingNode: outline.Mapping, yaml.SequenceNode: outline.Sequence}[y.Kind]
	if n.Kind != want && !(n.Kind == outline.Empty && y.Value == "") {
		t.Errorf("%s:%d:%d: the outline has kind %d, want %d", file, y.Line, y.Column, n.Kind, want)
		return
	}
	switch y.Kind {
	case yaml.MappingNode:
		if len(n.Pairs) != len(y.Content)/2 {
			t.Errorf("%s:%d: the outline has %d keys, want %d", file, y.Line, len(n.Pairs), len(y.Content)/2)
			return
		}
		for i, p := range n.Pairs {
			key := y.Content[2*i]
			if at := offsetOf(text, key.Line, key.Column); p.Key != key.Value || at != p.Start {
				t.Errorf("%s:%d:%d: the outline has the key %q at %d, want %q at %d", file, key.Line, key.Column, p.Key, p.Start, key.Value, at)
			}
			compare(t, file, text, p.Value, y.Content[2*i+1])
		}
	case yaml.SequenceNode:
		if len(n.Items) != len(y.Content) {
			t.Errorf("%s:%d: the outline has %d items, want %d", file, y.Line, len(n.Items), len(y.Content))
			return
		}
		for i, item := range n.Items {
			compare(t, file, text, item, y.Content[i])
		}
	}
}

// offsetOf converts a 1-based line and column in characters to a byte offset.
func offsetOf(text string, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		at += strings.IndexByte(text[at:], '\n') + 1
	}
	for ; column > 1; column-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

// TestParse_AnyText checks that no text panics or yields offsets outside the text.
func TestParse_AnyText(t *testing.T) {
	documents := lsptest.Texts(t)
	rapid.Check(t, func(t *rapid.T) {
		text := lsptest.DrawBrokenText(t, documents)
		outline.Parse(text).Walk(func(n *outline.Node) {
			if n.Start < 0 || n.Start > n.End || n.End > len(text) {
				t.Fatalf("a value from %d to %d in a text of %d bytes", n.Start, n.End, len(text))
			}
			for _, p := range n.Pairs {
				if p.Start < 0 || p.Start > p.End || p.End > len(text) {
					t.Fatalf("the key %q from %d to %d", p.Key, p.Start, p.End)
				}
			}
		})
	})
}

func TestParse_BoundsDepth(t *testing.T) {
	for _, text := range []string{strings.Repeat("[", 100_000), strings.Repeat("{a: ", 100_000), strings.Repeat("- ", 100_000), strings.Repeat("a:\n ", 3)} {
		deepest := 0
		var walk func(*outline.Node, int)
		walk = func(n *outline.Node, depth int) {
			deepest = max(deepest, depth)
			for _, i := range n.Items {
				walk(i, depth+1)
			}
			for _, p := range n.Pairs {
				walk(p.Value, depth+1)
			}
		}
		walk(outline.Parse(text), 0)
		if deepest > 2*outline.MaxDepth {
			t.Errorf("%.20s… is %d levels deep", text, deepest)
		}
	}
}
