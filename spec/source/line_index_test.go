package source_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/spec/source"
)

// TestFile_LineOfAnyText compares Line with the lines of strings.Split.
func TestFile_LineOfAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "bc\r", "é"}), 0, 300).Draw(t, "lines"), "\n")
		f := &source.File{Text: []byte(text)}
		lines := strings.Split(text, "\n")
		for n := range len(lines) + 2 {
			want := ""
			if n < len(lines) {
				want = strings.TrimSuffix(lines[n], "\r")
			}
			if got := f.Line(n + 1); got != want {
				t.Fatalf("line %d of %q is %q, want %q", n+1, text, got, want)
			}
		}
	})
}

// TestFile_LineOfNewText: the text of a file may be set after a line was read.
func TestFile_LineOfNewText(t *testing.T) {
	f := &source.File{}
	before := f.Line(2)
	f.Text = []byte("one\ntwo")
	if got := f.Line(2); before != "" || got != "two" {
		t.Errorf("got %q, then %q", before, got)
	}
}

// BenchmarkFile_Line reads the last line of files of different lengths.
func BenchmarkFile_Line(b *testing.B) {
	for _, n := range []int{1000, 10000, 100000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := &source.File{Text: []byte(strings.Repeat("- {type: Echo}\n", n))}
			for b.Loop() {
				_ = f.Line(n)
			}
		})
	}
}
