package source_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/spec/source"
)

func span(f *source.File, line, column int) source.Span {
	return source.Span{File: f, Start: source.Pos{Line: line, Column: column}, End: source.Pos{Line: line, Column: column + 1}}
}

func TestCompare_IncludedFile(t *testing.T) {
	root := &source.File{Path: "app.yaml"}
	tools := &source.File{Path: "tools.yaml", From: span(root, 5, 8)}
	deep := &source.File{Path: "deep.yaml", From: span(tools, 2, 1)}
	order := []source.Span{span(root, 4, 1), span(root, 5, 8), span(tools, 1, 1), span(deep, 99, 1), span(tools, 3, 1), span(root, 5, 9), span(root, 6, 1)}
	got := []source.Span{order[6], order[3], order[0], order[5], order[2], order[4], order[1]}
	slices.SortStableFunc(got, source.Compare)
	if !slices.Equal(got, order) {
		var positions []string
		for _, s := range got {
			positions = append(positions, s.String())
		}
		t.Errorf("sorted as %s", strings.Join(positions, ", "))
	}
	if chain := order[3].Includes(); len(chain) != 2 || chain[0].String() != "tools.yaml:2:1" || chain[1].String() != "app.yaml:5:8" {
		t.Errorf("the chain of includes is %v", chain)
	}
}

func TestFile_Line(t *testing.T) {
	f := &source.File{Path: "a", Text: []byte("one\r\ntwo\n\nfour")}
	for n, want := range map[int]string{1: "one", 2: "two", 3: "", 4: "four", 5: "", 0: "one"} {
		if got := f.Line(n); got != want {
			t.Errorf("line %d is %q, want %q", n, got, want)
		}
	}
}

func TestSpan_String(t *testing.T) {
	f := &source.File{Path: "a.yaml"}
	for want, s := range map[string]source.Span{"": {}, "a.yaml": {File: f}, "a.yaml:3:7": span(f, 3, 7)} {
		if s.String() != want {
			t.Errorf("got %q, want %q", s, want)
		}
	}
}
