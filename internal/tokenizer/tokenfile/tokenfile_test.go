package tokenfile_test

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tokenizer/tokenfile"
)

// small is a tokenizer that testdata/make.py trained, with the counts of the Python packages.
type small struct {
	JSON   json.RawMessage `json:"json"`
	Model  string          `json:"model"` // base64
	Counts map[string]int  `json:"counts"`
}

func (s small) content(t testing.TB) []byte {
	t.Helper()
	if s.JSON != nil {
		return s.JSON
	}
	data, err := base64.StdEncoding.DecodeString(s.Model)
	testkit.Must(t, err)
	return data
}

func smallTokenizers(t testing.TB) map[string]small {
	t.Helper()
	f, err := os.Open("testdata/small.json.gz")
	testkit.Must(t, err)
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	testkit.Must(t, err)
	var all map[string]small
	testkit.Must(t, json.NewDecoder(unzipped).Decode(&all))
	return all
}

func sampleTexts(t testing.TB) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("testdata/texts.json")
	testkit.Must(t, err)
	var texts map[string]string
	testkit.Must(t, json.Unmarshal(raw, &texts))
	return texts
}

// TestCount_Small compares the counts of tokenizers of each kind with those of the
// Python packages.
func TestCount_Small(t *testing.T) {
	texts := sampleTexts(t)
	for name, s := range smallTokenizers(t) {
		tok, err := tokenfile.Parse(s.content(t))
		testkit.Must(t, err)
		for kind, text := range texts {
			if got := tok.Count(text); got != s.Counts[kind] {
				t.Errorf("%s, %s: %d tokens, want %d", name, kind, got, s.Counts[kind])
			}
		}
	}
}

// TestCount_InvalidUTF8: each invalid byte counts as U+FFFD.
func TestCount_InvalidUTF8(t *testing.T) {
	for name, s := range smallTokenizers(t) {
		tok, err := tokenfile.Parse(s.content(t))
		testkit.Must(t, err)
		if got, want := tok.Count("bad \xff\xfe bytes \x80"), s.Counts["invalid"]; got != want {
			t.Errorf("%s: %d tokens, want %d", name, got, want)
		}
	}
}

// FuzzParse checks that no content makes Parse or Count panic.
func FuzzParse(f *testing.F) {
	for _, s := range smallTokenizers(f) {
		f.Add(s.content(f), "hello world")
	}
	f.Fuzz(func(_ *testing.T, data []byte, text string) {
		if tok, err := tokenfile.Parse(data); err == nil {
			tok.Count(text)
		}
	})
}

// TestParse_Damaged checks that files that end early, or have changed bytes, are errors
// or count something, and never panic.
func TestParse_Damaged(t *testing.T) {
	for _, s := range smallTokenizers(t) {
		data := s.content(t)
		for i := range 24 {
			if tok, err := tokenfile.Parse(data[:len(data)*i/24]); err == nil {
				tok.Count("hello, ｗorld ½")
			}
			changed := append([]byte{}, data...)
			changed[len(data)*i/24] ^= 0x55
			if tok, err := tokenfile.Parse(changed); err == nil {
				tok.Count("hello, ｗorld ½")
			}
		}
	}
}

func TestParse_Errors(t *testing.T) {
	for content, want := range map[string]string{
		``:                   "the file is empty",
		`not a tokenizer`:    "it is neither a tokenizer.json nor a SentencePiece model",
		`{"model": `:         "it is not JSON: unexpected end of JSON input at byte 10",
		`{"version": "1.0"}`: `it has no "model"; a tokenizer.json of Hugging Face has one`,
		`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}`:                                                                             `model: merge 1: the token "b" is not in the vocabulary`,
		`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b c"]}}`:                                                                           `model: merge 1: it must have two tokens, not 3`,
		`{"model": {"type": "BPE", "vocab": {}, "merges": []}}`:                                                                                        `model: the vocabulary is empty`,
		`{"model": {"type": "Magic"}}`:                                                                                                                 `the model "Magic" is not supported`,
		`{"normalizer": {"type": "Magic"}, "model": {"type": "WordLevel", "vocab": {"a": 0}}}`:                                                         `the normalizer "Magic" is not supported`,
		`{"pre_tokenizer": {"type": "UnicodeScripts"}, "model": {"type": "WordLevel", "vocab": {"a": 0}}}`:                                             `the pre-tokenizer "UnicodeScripts" is not supported`,
		`{"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "["}, "behavior": "Isolated"}, "model": {"type": "WordLevel", "vocab": {"a": 0}}}`:   `pre-tokenizer Split: the regular expression "["`,
		`{"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "a++"}, "behavior": "Isolated"}, "model": {"type": "WordLevel", "vocab": {"a": 0}}}`: `pre-tokenizer Split: ++ in the regular expression "a++" is not supported`,
		`{"pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "Sideways"}, "model": {"type": "WordLevel", "vocab": {"a": 0}}}`:  `pre-tokenizer Split: the behavior "Sideways" is not supported`,
		`{"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAEC"}, "model": {"type": "WordLevel", "vocab": {"a": 0}}}`:                   `normalizer Precompiled: the table of normalized characters is incomplete`,
		`{"model": {"type": "BPE", "vocab": ["a"], "merges": []}}`:                                                                                     `model: "vocab" cannot be array`,
	} {
		_, err := tokenfile.Parse([]byte(content))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", content, err, want)
		}
	}
	var unsupported *tokenfile.UnsupportedError
	if _, err := tokenfile.Parse([]byte(`{"normalizer": {"type": "Sequence", "normalizers": [{"type": "Magic"}]}, "model": {}}`)); !errors.As(err, &unsupported) {
		t.Errorf("got %v", err)
	}
}

// TestLoad reads a file again after it has changed.
func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	write := func(vocab string) {
		testkit.Must(t, os.WriteFile(path, []byte(`{"model": {"type": "BPE", "merges": [], "vocab": `+vocab+`}}`), 0o600))
	}
	write(`{"a": 0}`)
	first, err := tokenfile.Load(path)
	testkit.Must(t, err)
	if again, _ := tokenfile.Load(path); again != first {
		t.Error("an unchanged file was read twice")
	}
	write(`{"a": 0, "b": 1}`)
	second, err := tokenfile.Load(path)
	testkit.Must(t, err)
	if n, m := first.Count("ab"), second.Count("ab"); n != 1 || m != 2 {
		t.Errorf("%d and %d tokens", n, m)
	}
	for path, want := range map[string]string{filepath.Join(t.TempDir(), "none.json"): "there is no such file", t.TempDir(): "it is not a file"} {
		if _, err := tokenfile.Load(path); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// BenchmarkCount counts English text.
func BenchmarkCount(b *testing.B) {
	text := strings.Repeat(sampleTexts(b)["english"]+" ", 40)
	for name, s := range smallTokenizers(b) {
		tok, err := tokenfile.Parse(s.content(b))
		testkit.Must(b, err)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				tok.Count(text)
			}
		})
	}
}
