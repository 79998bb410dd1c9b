package hugot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/model"
)

// bert is a small tokenizer.
const bert = `{"normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "lowercase": true},
"pre_tokenizer": {"type": "BertPreTokenizer"}, "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9,
"vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "un": 3, "##known": 4, "##kno": 5, "word": 6, "gro": 7, "##ße": 8, ".": 9, "京": 10, "x": 11}}}`

// write makes a folder of files from pairs of names and contents.
func write(t *testing.T, files ...string) string {
	t.Helper()
	folder := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(folder, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestOpenFolder_Errors(t *testing.T) {
	base := []string{"model.onnx", "x", "config.json", "{}", "tokenizer.json", bert}
	for name, tt := range map[string]struct {
		folder string
		want   string
	}{
		"an address":         {"https://huggingface.co/x", "is an address; provider hugot reads a local folder"},
		"no folder":          {filepath.Join(t.TempDir(), "none"), "is not a folder with an ONNX model"},
		"empty":              {t.TempDir(), "has no ONNX file; expected model.onnx or onnx/model.onnx"},
		"several models":     {write(t, "a.onnx", "", "b.onnx", ""), "has 2 ONNX files and none is model.onnx"},
		"no config":          {write(t, "model.onnx", ""), "the file config.json is missing"},
		"no tokenizer":       {write(t, base[:4]...), "the file tokenizer.json is missing"},
		"broken config":      {write(t, "model.onnx", "", "config.json", "{", "tokenizer.json", bert), "config.json: unexpected end of JSON input"},
		"another tokenizer":  {write(t, "model.onnx", "", "config.json", "{}", "tokenizer.json", `{"model": {"type": "Unigram", "vocab": {}}}`), `tokenizer.json: model: the type "Unigram" is not supported`},
		"no unknown word":    {write(t, "model.onnx", "", "config.json", "{}", "tokenizer.json", strings.Replace(bert, `"[UNK]":`, `"?":`, 1)), `tokenizer.json: the vocabulary has no "[UNK]"`},
		"another pooling":    {write(t, append([]string{"1_Pooling/config.json", `{"pooling_mode_max_tokens": true}`}, base...)...), "1_Pooling/config.json: the only supported ways are mean and the first token (cls)"},
		"two ways of it":     {write(t, append([]string{"1_Pooling/config.json", `{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}`}, base...)...), "1_Pooling/config.json: the only supported ways"},
		"a layer after that": {write(t, append([]string{"modules.json", `[{"type": "sentence_transformers.models.Dense"}]`}, base...)...), "modules.json: a module of type Dense is not supported"},
	} {
		if _, err := openFolder(tt.folder); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

func TestOpenFolder(t *testing.T) {
	files := []string{
		"onnx/model.onnx", "weights", "onnx/model_quantized.onnx", "", "config.json", `{"max_position_embeddings": 512}`,
		"tokenizer.json", strings.Replace(bert, "{", `{"truncation": {"max_length": 128}, `, 1), "modules.json", `[{"type": "a.Transformer"}, {"type": "a.Pooling"}, {"type": "a.Normalize"}]`,
		"1_Pooling/config.json", `{"pooling_mode_cls_token": true}`,
	}
	f, err := openFolder(write(t, files...))
	if err != nil {
		t.Fatal(err)
	}
	if f.limit != 128 || !f.first || !f.normalize || f.onnx != "model.onnx" || filepath.Base(f.onnxAt) != "onnx" {
		t.Errorf("got %+v", f)
	}
	g, err := openFolder(write(t, append(files, "sentence_bert_config.json", `{"max_seq_length": 256}`)...))
	if err != nil || g.limit != 256 || g.digest == f.digest {
		t.Errorf("got %+v, %v", g, err)
	}
	files[1] = "other weights"
	if h, err := openFolder(write(t, files...)); err != nil || h.digest == f.digest {
		t.Errorf("the digest is %s also of another model, %v", h.digest, err)
	}
}

func TestPool(t *testing.T) {
	states := [][]float32{{3, 0}, {1, 8}}
	for _, tt := range []struct {
		folder folder
		want   []float32
	}{
		{folder{}, []float32{2, 4}},
		{folder{first: true}, []float32{3, 0}},
		{folder{first: true, normalize: true}, []float32{1, 0}},
	} {
		if d := cmp.Diff(tt.want, tt.folder.pool(states)); d != "" {
			t.Errorf("%+v: %s", tt.folder, d)
		}
	}
}

func TestTokens(t *testing.T) {
	w, err := parseWordPiece([]byte(bert))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]uint32{
		"":                      {1, 2},
		"Unknown  WORD.":        {1, 3, 4, 6, 9, 2},
		"unknowable":            {1, 0, 2}, // ten characters
		"unkn":                  {1, 0, 2},
		"Gr\u00f6\u00dfe":       {1, 7, 8, 2}, // an accent, and a letter that is none
		"\u200bwo\x00rd\u4eacx": {1, 6, 10, 11, 2},
		"x x x x x x x x x x x": {1, 11, 11, 11, 11, 11, 11, 2},
	} {
		if d := cmp.Diff(want, w.tokens(text, 8)); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
	no := false
	w.Normalizer.StripAccents, w.Normalizer.Lowercase = &no, false
	if got := w.normalize("Gr\u00f6\u00dfe"); got != "Gr\u00f6\u00dfe" {
		t.Errorf("got %q", got)
	}
}

// fakeRunner returns the number of tokens of a text as its vector, and records the batches.
type fakeRunner struct {
	batches [][][]uint32
	cancel  func()
}

func (f *fakeRunner) run(texts [][]uint32) (states [][][]float32, err error) {
	f.batches = append(f.batches, texts)
	if texts[0][1] == 4 {
		panic("unknown operation")
	}
	if f.cancel != nil {
		f.cancel()
	}
	for _, ids := range texts {
		states = append(states, [][]float32{{float32(len(ids) - 2)}})
	}
	return states, nil
}

// Texts are computed in batches of similar lengths, and returned in their order.
func TestEmbed(t *testing.T) {
	fake := &fakeRunner{}
	words, err := parseWordPiece([]byte(strings.Replace(bert, `"un"`, `"panic": 4, "un"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	e := &Embedder{info: model.Info{ID: "vectors"}, folder: &folder{path: "/m", words: words, limit: 100}, turn: make(chan struct{}, 1), runner: fake}
	var texts []string
	var want [][]float32
	for i := range batchSize + 2 {
		n := 1 + (i*7)%(batchSize+2)
		texts, want = append(texts, strings.Repeat("x ", n)), append(want, []float32{float32(n)})
	}
	got, used, err := e.Embed(t.Context(), texts)
	if d := cmp.Diff(want, got); err != nil || d != "" || used.Input != 75 {
		t.Errorf("got %v, %v, %s", err, used, d)
	}
	if len(fake.batches) != 2 || len(fake.batches[1]) != 2 || len(fake.batches[1][0]) != batchSize+3 {
		t.Errorf("got batches %v", fake.batches)
	}
	if _, _, err := e.Embed(t.Context(), []string{"panic"}); err == nil || err.Error() != "model vectors: /m: unknown operation" {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	fake.cancel = cancel
	if _, _, err := e.Embed(ctx, texts); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v after the end of the context", err)
	}
	e.turn <- struct{}{} // another call
	if _, _, err := e.Embed(ctx, texts); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v while another call is worked on", err)
	}
}
