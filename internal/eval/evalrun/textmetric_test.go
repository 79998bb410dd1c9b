package evalrun

import (
	"math"
	"testing"

	"github.com/qtype-dev/qtype/spec"
)

// TestTextMetrics compares metrics of texts with figures computed by hand.
func TestTextMetrics(t *testing.T) {
	const cat = "The cat sat on the mat."
	for _, c := range []struct {
		name           string
		compare        func(*spec.Metric, *sample) (Score, error)
		expected, text string
		want           float64
	}{
		{"levenshtein", levenshtein, "kitten", "sitting", 1 - 3.0/7},
		{"levenshtein", levenshtein, "", "", 1},
		{"levenshtein", levenshtein, "", "abc", 0},
		{"levenshtein", levenshtein, "größe", "grösse", 1 - 2.0/6},
		{"rouge_l", rougeL, cat, "the cat is on the mat", 5.0 / 6},
		{"rouge_l", rougeL, cat, "the cat", 2 * 1 * (1.0 / 3) / (1 + 1.0/3)},
		{"rouge_l", rougeL, "我们走", "我走", 2 * 1 * (2.0 / 3) / (1 + 2.0/3)},
		{"rouge_l", rougeL, cat, "", 0},
		{"bleu", bleu, cat, "the cat sat on the mat", 1},
		{"bleu", bleu, cat, "the cat is on the mat", math.Pow(5.0/6*3/5*1/4*0.5/3, 0.25)},
		{"bleu", bleu, cat, "the cat sat", math.Exp(1 - 2)},
		{"bleu", bleu, cat, "a dog", 0},
		{"bleu", bleu, cat, "...", 0},
	} {
		got, err := c.compare(&spec.Metric{}, &sample{expected: c.expected, output: c.text, known: true})
		if err != nil || math.Abs(got.Value-c.want) > 1e-6 {
			t.Errorf("%s of %q and %q: got %v, %v, want %v", c.name, c.expected, c.text, got.Value, err, c.want)
		}
	}
}
