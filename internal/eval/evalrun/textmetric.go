package evalrun

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// negated makes a scorer that passes where another fails.
func negated(s scorer, m *spec.Metric) scorer {
	return func(ctx context.Context, of *sample) (Score, error) {
		score, err := s(ctx, of)
		if err != nil {
			return score, err
		}
		if score.Value > 0 {
			return failed("%q passes %s, and must not", value.Text(of.output), m.Type), nil
		}
		return passed(), nil
	}
}

func startsWith(m *spec.Metric, s *sample) (Score, error) {
	want, text := value.Text(s.expected), value.Text(s.output)
	if want == "" {
		return Score{}, errEmptyExpected
	}
	if strings.HasPrefix(normalized(m, text), normalized(m, want)) {
		return passed(), nil
	}
	return failed("%q does not start with %q", text, want), nil
}

// parsing makes the scorer that passes a text if it is JSON, and each other value.
func parsing(*spec.Metric) scorer {
	return func(_ context.Context, s *sample) (Score, error) {
		if text := value.Text(s.output); isText(s.variable) && !json.Valid([]byte(text)) {
			return failed("%q is not JSON", text), nil
		}
		return passed(), nil
	}
}

// maxCharacters is the length of texts whose distance is computed: it needs time by the product
// of their lengths.
const maxCharacters = 20_000

// levenshtein returns the share of characters that need not be inserted, deleted or replaced to make the expected
// text of the output.
func levenshtein(m *spec.Metric, s *sample) (Score, error) {
	want, got := []rune(normalized(m, value.Text(s.expected))), []rune(normalized(m, value.Text(s.output)))
	longer := max(len(want), len(got))
	switch {
	case longer == 0:
		return decide(m, passed(), ""), nil
	case longer > maxCharacters:
		return Score{}, fmt.Errorf("a text has more than %d characters", maxCharacters)
	}
	distance := distanceOf(want, got)
	score := 1 - float64(distance)/float64(longer)
	return decide(m, Score{Value: score}, fmt.Sprintf("the score %.3f (distance %d)", score, distance)), nil
}

// distanceOf returns the number of characters to insert, delete or replace.
func distanceOf(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			above := row[j+1]
			if x != y {
				diagonal = min(diagonal, above, row[j]) + 1
			}
			row[j+1], diagonal = diagonal, above
		}
	}
	return row[len(b)]
}

// words returns the words of a text in lower case: letters, digits and what is within them. Each character of
// scripts without spaces is a word.
func words(text string) []string {
	var all []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			all = append(all, word.String())
			word.Reset()
		}
	}
	for _, r := range strings.ToLower(text) {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			end()
			all = append(all, string(r))
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			word.WriteRune(r)
		default:
			end()
		}
	}
	end()
	return all
}

// rougeL returns ROUGE-L: the F-measure of the longest common sequence of words.
func rougeL(m *spec.Metric, s *sample) (Score, error) {
	want, got := words(value.Text(s.expected)), words(value.Text(s.output))
	if len(want) > maxCharacters || len(got) > maxCharacters {
		return Score{}, fmt.Errorf("a text has more than %d words", maxCharacters)
	}
	score := 0.0
	if common := float64(commonLength(want, got)); common > 0 {
		precision, recall := common/float64(len(got)), common/float64(len(want))
		score = 2 * precision * recall / (precision + recall)
	}
	return decide(m, Score{Value: score}, fmt.Sprintf("ROUGE-L %.3f", score)), nil
}

// commonLength returns the length of the longest common subsequence.
func commonLength(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

// maxGram is the number of words of the longest parts that BLEU compares.
const maxGram = 4

// bleu returns BLEU of one sentence: the geometric mean of the shares of its parts of 1 to 4 words that the expected text has,
// with a penalty for a shorter text. A share without a match, of parts of more than one word, is that of half a match.
func bleu(m *spec.Metric, s *sample) (Score, error) {
	want, got := words(value.Text(s.expected)), words(value.Text(s.output))
	score := bleuOf(want, got)
	return decide(m, Score{Value: score}, fmt.Sprintf("BLEU %.3f", score)), nil
}

func bleuOf(want, got []string) float64 {
	sum, count := 0.0, 0
	for n := 1; n <= min(maxGram, len(got)); n++ {
		left := map[string]int{}
		for i := range max(0, len(want)-n+1) {
			left[strings.Join(want[i:i+n], " ")]++
		}
		matches, total := 0.0, len(got)-n+1
		for i := range total {
			if key := strings.Join(got[i:i+n], " "); left[key] > 0 {
				left[key]--
				matches++
			}
		}
		if matches == 0 {
			if n == 1 {
				return 0
			}
			matches = 0.5
		}
		sum, count = sum+math.Log(matches/float64(total)), count+1
	}
	if count == 0 {
		return 0
	}
	return math.Exp(sum/float64(count)) * math.Exp(min(0, 1-float64(len(want))/float64(len(got))))
}
