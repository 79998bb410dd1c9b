package splitter_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/splitter"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// tb is a *testing.T, *testing.B or *rapid.T.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// with returns the step of a splitter with arguments.
func with(name string, size, overlap int, args map[string]any) *spec.DocumentSplitter {
	return &spec.DocumentSplitter{SplitterName: name, ChunkSize: size, ChunkOverlap: overlap, Args: args}
}

// makeSplitter returns the splitter of a step.
func makeSplitter(t tb, step *spec.DocumentSplitter, embedder model.Embedder) splitter.Splitter {
	t.Helper()
	args, problems := step.Arguments()
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	s, err := splitter.New(splitter.Settings{Name: step.SplitterName, Args: args, Embedder: embedder})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// chunks returns the chunks of a text.
func chunks(t tb, s splitter.Splitter, text string) []splitter.Chunk {
	t.Helper()
	var all []splitter.Chunk
	for chunk, err := range s.Split(context.Background(), splitter.Document{Text: text}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, chunk)
	}
	return all
}

// texts returns the texts of the chunks of a text.
func texts(t tb, s splitter.Splitter, text string) []string {
	t.Helper()
	var all []string
	for _, chunk := range chunks(t, s, text) {
		all = append(all, chunk.Text)
	}
	return all
}

func TestSplitters(t *testing.T) {
	for _, test := range []struct {
		name string
		step *spec.DocumentSplitter
		text string
		want []string
	}{
		{"sentences stay whole", with("SentenceSplitter", 8, 0, nil), "The red fox ran off. A dog barked at it. They met again.",
			[]string{"The red fox ran off.", "A dog barked at it.", "They met again."}},
		{"sentences overlap", with("SentenceSplitter", 12, 6, nil), "One is one. Two is two. Three is not four.",
			[]string{"One is one. Two is two.", "Two is two. Three is not four."}},
		{"long sentences are cut at commas", with("SentenceSplitter", 6, 0, nil), "first this thing, then that thing, at last nothing",
			[]string{"first this thing,", "then that thing,", "at last nothing"}},
		{"words", with("TokenTextSplitter", 5, 0, nil), "one two three four five six seven", []string{"one two three four five", "six seven"}},
		{"words keep white space", with("TokenTextSplitter", 5, 0, map[string]any{"keep_whitespaces": true}),
			"one two three four five six seven", []string{"one two three four five", " six seven"}},
		{"paragraphs", with("recursive", 8, 0, nil), "One paragraph is here.\n\nAnother one is there.\n\nEnd.",
			[]string{"One paragraph is here.", "Another one is there.\n\nEnd."}},
		{"sections", with("MarkdownNodeParser", 0, 0, nil), "Before.\n\n# A\ntext\n## B\n```\n# code\n```\n#tag\n# C",
			[]string{"Before.", "# A\ntext", "## B\n```\n# code\n```\n#tag", "# C"}},
		{"tables", with("MarkdownElementNodeParser", 0, 0, nil), "# A\ntext\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\nmore\n# B\n| no table",
			[]string{"# A\ntext", "| a | b |\n| - | - |\n| 1 | 2 |", "more", "# B\n| no table"}},
		{"elements", with("HTMLNodeParser", 0, 0, nil), "<h1>T</h1><div>lost<p>Some <a>linked</a> &amp; <b>bold</b> text</p></div><ul><li>i1<li>i2</ul><script>x</script>",
			[]string{"T", "Some\nlinked\n&\ntext", "bold", "i1\ni2"}},
		{"tags", with("HTMLNodeParser", 0, 0, map[string]any{"tags": []any{"td"}}), "<table><tr><td>1</td><td>2</td></tr></table><p>x</p>", []string{"1\n2"}},
		{"object", with("JSONNodeParser", 0, 0, nil), `{"a": 1, "b": {"c": [1, {"d": "x"}], "e": null}, "f": true, "g": 1.50}`,
			[]string{"a 1\nb c 1\nb c d x\nb e None\nf True\ng 1.5"}},
		{"list", with("JSONNodeParser", 0, 0, nil), `[{"a": "é"}, 2, [3, 4]]`, []string{"a é", "2", "3\n4"}},
		{"code", with("CodeSplitter", 0, 0, map[string]any{"language": "go", "max_chars": 40}), "package p\n\nimport \"io\"\n\n// F is.\nfunc F() {\n\ta()\n\n\tb()\n}\n\nfunc G() {\n}\n",
			[]string{"package p\n\nimport \"io\"", "// F is.\nfunc F() {\n\ta()\n\n\tb()\n}", "func G() {\n}"}},
		{"methods", with("CodeSplitter", 0, 0, map[string]any{"language": "python", "max_chars": 45}), "class A:\n    x = 1\n\n    def f(self):\n        a()\n\n        b()\n\n    def g(self):\n        c()\n\n        d()\n",
			[]string{"class A:\n    x = 1", "def f(self):\n        a()\n\n        b()", "def g(self):\n        c()\n\n        d()"}},
		{"windows", with("SentenceWindowNodeParser", 0, 0, map[string]any{"window_size": 1}), "One. Two. Three.", []string{"One. ", "Two. ", "Three."}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.step.SplitterName == "TokenTextSplitter" {
				test.step.ChunkSize += 2 // for the separators of metadata
			}
			if diff := cmp.Diff(test.want, texts(t, makeSplitter(t, test.step, nil), test.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSplitters_MetadataOfChunks(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       [][]splitter.Entry
	}{
		{"MarkdownNodeParser", "# A\n## B\nx\n### C", [][]splitter.Entry{{{Key: "header_path", Value: "/"}}, {{Key: "header_path", Value: "/A/"}}, {{Key: "header_path", Value: "/A/B/"}}}},
		{"MarkdownElementNodeParser", "a\n|x|\n|-|", [][]splitter.Entry{{{Key: "element_type", Value: "text"}}, {{Key: "element_type", Value: "table"}}}},
		{"HTMLNodeParser", "<p>a</p><b>c</b>", [][]splitter.Entry{{{Key: "tag", Value: "p"}}, {{Key: "tag", Value: "b"}}}},
		{"SentenceWindowNodeParser", "One. Two.", [][]splitter.Entry{
			{{Key: "window", Value: "One.  Two."}, {Key: "original_text", Value: "One. "}},
			{{Key: "window", Value: "One.  Two."}, {Key: "original_text", Value: "Two."}}}},
	} {
		var got [][]splitter.Entry
		for _, chunk := range chunks(t, makeSplitter(t, with(test.name, 0, 0, nil), nil), test.text) {
			got = append(got, chunk.Metadata)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TokenTextSplitter needs a chunk_size above the tokens that separate metadata and text.
func TestTokenTextSplitter_SmallChunks(t *testing.T) {
	for _, err := range makeSplitter(t, with("TokenTextSplitter", 2, 0, nil), nil).Split(t.Context(), splitter.Document{Text: "one two"}) {
		if err == nil || !strings.Contains(err.Error(), "chunk_size is 2, of which 2 tokens separate metadata and text") {
			t.Errorf("error %v; want one about chunk_size", err)
		}
	}
}

func TestJSONNodeParser_Errors(t *testing.T) {
	for _, text := range []string{"", "3", "{", `{"a" 1}`, "[1] 2", `["a"`, strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 100_000)} {
		var failed error
		for _, err := range makeSplitter(t, with("JSONNodeParser", 0, 0, nil), nil).Split(t.Context(), splitter.Document{Text: text}) {
			failed = err
		}
		if failed == nil || !strings.HasPrefix(failed.Error(), "the content is not a JSON object or list: ") {
			t.Errorf("%.20q: error %v", text, failed)
		}
	}
}

// oddTexts are texts that are hard to divide.
func oddTexts(n int) map[string]string {
	return map[string]string{
		"one word":         strings.Repeat("a", n),
		"spaces":           strings.Repeat(" ", n),
		"line ends":        strings.Repeat("\n", n),
		"periods":          strings.Repeat(".", n),
		"spaced periods":   strings.Repeat(". ", n/2),
		"brackets":         strings.Repeat("a.)", n/3),
		"sentences":        strings.Repeat("A b. ", n/5),
		"initials":         strings.Repeat("A. ", n/3),
		"emoji":            strings.Repeat("🏴", n/4),
		"quotes":           strings.Repeat("\" ' ", n/4),
		"number signs":     strings.Repeat("# ", n/2),
		"headings":         strings.Repeat("# a\n", n/4),
		"deep headings":    strings.Repeat("#", n/2) + " a\n" + strings.Repeat("#", n/2),
		"open elements":    strings.Repeat("<p>", n/3),
		"nested elements":  strings.Repeat("<div><p>x", n/9),
		"table":            strings.Repeat("|-|\n", n/4),
		"special tokens":   strings.Repeat("<|endoftext|>", n/13),
		"broken specials":  strings.Repeat("<|", n/2),
		"blank lines":      strings.Repeat("a\n\n", n/3),
		"commas":           strings.Repeat(",", n),
		"hyphens":          strings.Repeat("-", n),
		"words of periods": strings.Repeat("a.b ", n/4),
	}
}

// allSplitters returns every splitter except the semantic one and that for JSON, which
// rejects other texts.
func allSplitters() []*spec.DocumentSplitter {
	var all []*spec.DocumentSplitter
	for _, row := range spec.Splitters() {
		switch {
		case row.Semantic || row.Name == "JSONNodeParser":
		case row.Name == "CodeSplitter":
			all = append(all, with(row.Name, 0, 0, map[string]any{"language": "python"}))
		default:
			all = append(all, with(row.Name, 100, 20, nil))
		}
	}
	return all
}

// With a quadratic algorithm this test would need hours.
func TestSplitters_OddTexts(t *testing.T) {
	testkit.SkipWithRace(t)
	for name, text := range oddTexts(300_000) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, step := range allSplitters() {
				places := splitter.NewPlaces(text, nil, true)
				end, n := 0, 0
				for chunk, err := range makeSplitter(t, step, nil).Split(t.Context(), splitter.Document{Text: text}) {
					if err != nil {
						t.Fatal(step.SplitterName, err)
					}
					if chunk.End < end-len(text)/2 || chunk.End > len(text) || chunk.Start > chunk.End {
						t.Fatalf("%s: range %d-%d", step.SplitterName, chunk.Start, chunk.End)
					}
					if end = chunk.End; n%1000 == 0 {
						places.Of(chunk)
					}
					n++
				}
			}
		})
	}
}

func tokens(text string) int {
	e, err := tokenizer.For(tokenizer.Cl100k)
	if err != nil {
		panic(err)
	}
	return e.Count(text)
}

// texts that look like prose, Markdown or code.
var prose = rapid.Custom(func(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"word", "The", "e.g.", "3.14", "A.", "naïve", "語", "🏴", ".", "?", "!", ",", ";", ":", "\"", ")", "(", "-", "--", "...",
		" ", " ", " ", "  ", "\n", "\n\n", "\n\n\n", "\t", "\r\n", "# Head\n", "## Sub\n", "```\n", "|a|b|\n", "|-|-|\n", "<p>", "</p>", "<b>", "\u00a0", "\x1c"}), 0, 120).Draw(t, "parts")
	return strings.Join(parts, "")
})

// Chunks are ranges of the text in order, cover it, fit their size, and share at most the
// overlap.
func TestSizedSplitters_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := prose.Draw(t, "text")
		size := rapid.IntRange(6, 40).Draw(t, "size")
		overlap := rapid.IntRange(0, size-1).Draw(t, "overlap")
		name := rapid.SampledFrom([]string{"SentenceSplitter", "TokenTextSplitter", "recursive"}).Draw(t, "splitter")
		previous := splitter.Chunk{}
		for _, chunk := range chunks(t, makeSplitter(t, with(name, size, overlap, nil), nil), text) {
			if text[chunk.Start:chunk.End] != chunk.Text || chunk.IsBlank() {
				t.Fatalf("chunk %q is not the range %q", chunk.Text, text[chunk.Start:chunk.End])
			}
			if chunk.Start < previous.Start || chunk.End < previous.End {
				t.Fatalf("chunk %q is not after %q", chunk.Text, previous.Text)
			}
			if gap := text[min(previous.End, chunk.Start):chunk.Start]; strings.TrimFunc(gap, blank) != "" {
				t.Fatalf("%q is in no chunk", gap)
			}
			// Pieces are counted one by one, as by LlamaIndex. Joined and trimmed they may have a
			// few tokens more.
			if n := tokens(chunk.Text); n > size+2 && utf8.RuneCountInString(chunk.Text) > 1 {
				t.Fatalf("chunk %q has %d tokens, more than %d", chunk.Text, n, size)
			}
			if shared := previous.End - chunk.Start; shared > 0 && tokens(text[chunk.Start:previous.End]) > overlap+1 {
				t.Fatalf("%q is shared, more than %d tokens", text[chunk.Start:previous.End], overlap)
			}
			previous = chunk
		}
		if rest := text[previous.End:]; strings.TrimFunc(rest, blank) != "" {
			t.Fatalf("%q is in no chunk", rest)
		}
	})
}

func blank(r rune) bool { return unicode.IsSpace(r) || r >= 0x1C && r <= 0x1F }

// The chunks of structures are ranges of the text, in order, without gaps.
func TestStructureSplitters_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := prose.Draw(t, "text")
		step := rapid.SampledFrom([]*spec.DocumentSplitter{with("MarkdownNodeParser", 0, 0, nil), with("MarkdownElementNodeParser", 0, 0, nil),
			with("SentenceWindowNodeParser", 0, 0, nil), with("CodeSplitter", 0, 0, map[string]any{"language": "c", "max_chars": 20})}).Draw(t, "splitter")
		end := 0
		for _, chunk := range chunks(t, makeSplitter(t, step, nil), text) {
			if text[chunk.Start:chunk.End] != chunk.Text || chunk.Start < end || strings.TrimFunc(text[end:chunk.Start], blank) != "" {
				t.Fatalf("%s: chunk %q at %d after %d", step.SplitterName, chunk.Text, chunk.Start, end)
			}
			end = chunk.End
		}
		if strings.TrimFunc(text[end:], blank) != "" {
			t.Fatalf("%s: %q is in no chunk", step.SplitterName, text[end:])
		}
	})
}

func TestPlaces(t *testing.T) {
	text := "Titel äöü\n# One\nüber\n## Two\ntext\n\f# Three\nend"
	places := splitter.NewPlaces(text, []int{0, 33}, true)
	at := func(sub string) splitter.Place {
		start := strings.Index(text, sub)
		return places.Of(splitter.Chunk{Text: sub, Start: start, End: start + len(sub)})
	}
	for sub, want := range map[string]splitter.Place{
		"Titel äöü\n":  {CharStart: 0, CharEnd: 10, LineStart: 1, LineEnd: 1, Page: 1},
		"über\n## Two": {CharStart: 16, CharEnd: 27, LineStart: 3, LineEnd: 4, Page: 1, Headings: []string{"One"}},
		"text":         {CharStart: 28, CharEnd: 32, LineStart: 5, LineEnd: 5, Page: 1, Headings: []string{"One", "Two"}},
		"end":          {CharStart: 42, CharEnd: 45, LineStart: 7, LineEnd: 7, Page: 2, Headings: []string{"One", "Two"}},
	} {
		if diff := cmp.Diff(want, at(sub)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", sub, diff)
		}
	}
}

// Places agree with counting from the beginning.
func TestPlaces_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(prose.Draw(t, "text"), rapid.IntRange(1, 20).Draw(t, "times"))
		starts := []int{0}
		for i := range text {
			starts = append(starts, i)
		}
		start := rapid.SampledFrom(starts).Draw(t, "start")
		place := splitter.NewPlaces(text, nil, false).Of(splitter.Chunk{Start: start, End: len(text)})
		if want := utf8.RuneCountInString(text[:start]); place.CharStart != want {
			t.Fatalf("character %d, want %d", place.CharStart, want)
		}
		if want := strings.Count(text[:start], "\n") + 1; place.LineStart != want {
			t.Fatalf("line %d, want %d", place.LineStart, want)
		}
	})
}

// letterModel embeds a text as the counts of two letters.
type letterModel struct{ model.Embedder }

// Embed implements model.Embedder.
func (letterModel) Embed(_ context.Context, texts []string) ([][]float32, model.Usage, error) {
	var vectors [][]float32
	for _, text := range texts {
		vectors = append(vectors, []float32{float32(strings.Count(text, "a")), float32(strings.Count(text, "b"))})
	}
	return vectors, model.Usage{}, nil
}

func TestSemanticSplitter(t *testing.T) {
	text := "Aaa aaa. Aa aaa. Aaa aaa. Bbb bbb. Bb bbb. Bbb bbb."
	got := texts(t, makeSplitter(t, with("SemanticSplitter", 0, 0, map[string]any{"breakpoint_percentile_threshold": 80}), letterModel{}), text)
	if want := []string{"Aaa aaa. Aa aaa. Aaa aaa. ", "Bbb bbb. Bb bbb. Bbb bbb."}; !slices.Equal(got, want) {
		t.Errorf("chunks %q, want %q", got, want)
	}
	repeated := strings.Repeat("Abba bab. ", 9) // its distances are 0, but for rounding
	if got := texts(t, makeSplitter(t, with("SemanticSplitter", 0, 0, map[string]any{"breakpoint_percentile_threshold": 0}), letterModel{}), repeated); len(got) != 1 {
		t.Errorf("a sentence that is repeated has the chunks %q", got)
	}
	if got := texts(t, makeSplitter(t, with("SemanticSplitter", 0, 0, nil), letterModel{}), " \n"); got != nil {
		t.Errorf("a blank text has the chunks %q", got)
	}
	if _, err := splitter.New(splitter.Settings{Name: "SemanticSplitter", Args: new(spec.SemanticArgs)}); err == nil {
		t.Error("no error without a model")
	}
}
