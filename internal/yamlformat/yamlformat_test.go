package yamlformat

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/lsp/lsptest"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"formatted already", "id: x\nmemories:\n  - id: m\n", "id: x\nmemories:\n  - id: m\n"},
		{"spaces at the ends of lines", "id: x  \n\t\nmemories: []\t\n", "id: x\n\nmemories: []\n"},
		{"empty lines", "\n\n\nid: x\n\n\n\nb: 1\n\n", "id: x\n\nb: 1\n"},
		{"no line end", "id: x", "id: x\n"},
		{"four spaces per level", "a:\n    b:\n        c: 1\n", "a:\n  b:\n    c: 1\n"},
		{"lists below their key", "a:\n- b: 1\n  c: 2\n- d\n", "a:\n  - b: 1\n    c: 2\n  - d\n"},
		{"wide dashes", "a:\n  -   b: 1\n      c: 2\n", "a:\n  - b: 1\n    c: 2\n"},
		{"lists in lists", "a:\n    -   - 1\n        - 2\n", "a:\n  - - 1\n    - 2\n"},
		{"wide values", "a:    1\nb:   [1,  2]\n", "a: 1\nb: [1,  2]\n"},
		{"spaces before a colon", "a     : 1\n\"b\"   :   2\nccc   :\n  d : [e : f]\n", "a: 1\n\"b\": 2\nccc:\n  d: [e : f]\n"},
		{"an alias as a key", "a: &k  b\nc:\n  *k  :  d\n", "a: &k b\nc:\n  *k  :  d\n"},
		{"comments stay with their lines", "a:\n    # about b\n    b: 1 # why\n    # at the end\nc: 2\n# last\n", "a:\n  # about b\n  b: 1 # why\n  # at the end\nc: 2\n# last\n"},
		{"spaces before a comment are kept", "a: 1      # one\nbcd: 2    # two\n", "a: 1      # one\nbcd: 2    # two\n"},
		{"texts move with their key", "a:\n    t: |\n        one  \n\n\n          two\n    b: 1\n", "a:\n  t: |\n      one  \n\n\n        two\n  b: 1\n"},
		{"a text that keeps its line ends", "a:\n    t: |+\n        one\n\n\n", "a:\n  t: |+\n      one\n\n\n"},
		{"brackets over lines", "a:\n    b: [\n        1,\n        2\n    ]\n", "a:\n  b: [\n      1,\n      2\n  ]\n"},
		{"quotes over lines", "a:\n    b: \"one\n      two\"\n    c: 1\n", "a:\n  b: \"one\n    two\"\n  c: 1\n"},
		{"anchors", "a: &x\n    b: 1\nc:\n    <<: *x\n", "a: &x\n  b: 1\nc:\n  <<: *x\n"},
		{"Windows line ends", "a:\r\n    b: 1  \r\n\r\n\r\nc: 2\r\n", "a:\r\n  b: 1\r\n\r\nc: 2\r\n"},
		{"nothing", "", ""},
		{"only comments", "# one\n\n\n# two", "# one\n\n# two\n"},
		{"a value on the next line", "a:\n      b\nc:   !include  x.yaml\n", "a:\n      b\nc: !include x.yaml\n"},
		{"explicit indentation", "a:\n    b: |2\n         x\n", "a:\n  b: |2\n       x\n"},
		{"dashes", "---\na:\n    b: 1\n", "---\na:\n  b: 1\n"},
		{"directive", "# c\n%YAML 1.2\n---\na:\n    b: 1\n", "# c\n%YAML 1.2\n---\na:\n  b: 1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Format(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			assertSameMeaning(t, c.text, got)
		})
	}
}

// assertSameMeaning checks that two texts have the same tree and that formatting
// the second one changes nothing.
func assertSameMeaning(t interface{ Fatalf(string, ...any) }, before, after string) {
	a, err := parseYAML(before)
	if err != nil {
		t.Fatalf("not YAML: %v", err)
	}
	b, err := parseYAML(after)
	if err != nil {
		t.Fatalf("the result is not YAML: %v\n%s", err, after)
	}
	if !isSameTree(a, b) || !equalIgnoringSpace(before, after) {
		t.Fatalf("the meaning changed:\n%s\n----\n%s", before, after)
	}
	again, err := Format(after)
	if err != nil || again != after {
		t.Fatalf("formatting is not idempotent (%v):\n%s\n----\n%s", err, after, again)
	}
}

func TestFormat_BrokenYAML(t *testing.T) {
	for _, text := range []string{"a: [", "a: 1\n b: 2\n", "a: 1\n---\nb: 2\n", "\ta: 1\n"} {
		if got, err := Format(text); err == nil && got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestFormat_Documents(t *testing.T) {
	for file, text := range lsptest.Documents(t) {
		made, err := Format(text)
		if err != nil {
			continue // invalid on purpose
		}
		assertSameMeaning(t, text, made)
		if strings.Contains(file, "/examples/") && made != text {
			t.Errorf("%s is not formatted:\n%s", file, cmp.Diff(text, made))
		}
	}
}

// drawBlock draws a YAML block at a column, with every variation of white space
// that YAML allows.
func drawBlock(t *rapid.T, column, depth int) string {
	pad := strings.Repeat(" ", column)
	wide := func() string { return strings.Repeat(" ", rapid.IntRange(1, 4).Draw(t, "wide")) }
	var b strings.Builder
	isList := depth > 0 && rapid.Bool().Draw(t, "list")
	for i := range rapid.IntRange(1, 3).Draw(t, "entries") {
		if rapid.Bool().Draw(t, "comment") {
			b.WriteString(pad + "# note " + strings.Repeat(" ", i) + "\n")
		}
		b.WriteString(strings.Repeat("\n", rapid.IntRange(0, 2).Draw(t, "empty")))
		head := pad + "key" + string(rune('a'+i)) + ":"
		if isList {
			head = pad + "-"
		}
		b.WriteString(head)
		inner := column + rapid.IntRange(1, 5).Draw(t, "deeper")
		kind := rapid.IntRange(0, 6).Draw(t, "value")
		if depth >= 3 {
			kind %= 5
		}
		in := strings.Repeat(" ", inner)
		switch kind {
		case 0:
			b.WriteString(wide() + "word" + rapid.SampledFrom([]string{"", "  ", "  # why", " two"}).Draw(t, "after") + "\n")
		case 1:
			b.WriteString(wide() + "|" + rapid.SampledFrom([]string{"", "-", "+"}).Draw(t, "chomp") + "\n" + in + "one  \n\n" + in + "  two {x}\n" + rapid.SampledFrom([]string{"", "\n", "\n\n"}).Draw(t, "tail"))
		case 2:
			b.WriteString(wide() + "[1,\n" + in + "2, {a: b}\n" + in + "]\n")
		case 3:
			b.WriteString(wide() + "\"one\n\n" + in + "two # no comment\"\n")
		case 4:
			b.WriteString("\n" + in + "word\n" + in + "more\n")
		default:
			b.WriteString("\n" + drawBlock(t, inner, depth+1))
		}
	}
	return b.String()
}

// TestFormat_KeepsMeaning formats documents with arbitrary white space.
func TestFormat_KeepsMeaning(t *testing.T) {
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		text := drawBlock(t, 0, 0)
		made, err := Format(text)
		if err != nil {
			return // not valid YAML
		}
		if made != text {
			moved++
		}
		assertSameMeaning(t, text, made)
	})
	if moved < 20 {
		t.Errorf("only %d documents were changed at all", moved)
	}
}

// FuzzFormat formats any text: YAML keeps its meaning, other text is rejected.
func FuzzFormat(f *testing.F) {
	for _, text := range []string{"a:\n    - b: |+\n        x\n\n    -   c: [1,\n      2]\n# d\n", "a: &x {b: \"c\n  d\"}\ne:\n- *x\n"} {
		f.Add(text) // short seeds, because the fuzzer takes long to minimize long ones
	}
	f.Fuzz(func(t *testing.T, text string) {
		made, err := Format(text)
		if err != nil {
			return
		}
		before, err := parseYAML(text)
		if err != nil {
			t.Fatal(err)
		}
		after, err := parseYAML(made)
		if err != nil || !isSameTree(before, after) || !equalIgnoringSpace(text, made) {
			t.Fatalf("%q became %q (%v)", text, made, err)
		}
	})
}

// TestIndent_KeepsText checks that indenting any text changes white space alone.
func TestIndent_KeepsText(t *testing.T) {
	documents := lsptest.Texts(t)
	rapid.Check(t, func(t *rapid.T) {
		text := lsptest.DrawBrokenText(t, documents)
		if indented := indent(text); !equalIgnoringSpace(indented, text) {
			t.Fatalf("indenting %q returns %q", text, indented)
		}
	})
}
