package wordvectors

import (
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/vectors"
	"github.com/qtype-dev/qtype/internal/words"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// vector returns the vector of a text, of length 1.
func vector(text string) []float32 {
	var sum Vector
	for w := range words.All(text) {
		v := Default().Word(w.Term)
		sum.Add(&v)
	}
	vectors.Normalize(sum[:])
	return sum[:]
}

// TestModel_Tokens compares the tokens of words with those of the library tokenizers 0.23 for
// the tokenizer of the model.
func TestModel_Tokens(t *testing.T) {
	t.Parallel()
	names := map[token]string{}
	for name, number := range Default().numbers {
		names[number] = name
	}
	for word, want := range map[string][]string{
		"house":        {"_house"},
		"sourdough":    {"_s", "ourd", "ough"},
		"trebuchet":    {"_tre", "buch", "et"},
		"bibliotheken": {"_bibli", "othe", "ken"},
		"привет":       {"_при", "вет"},
		"2024":         {"2", "0", "2", "4"},
	} {
		var got []string
		for _, number := range Default().tokens(nil, word) {
			got = append(got, names[number])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

// TestModel_Meaning expects texts with another meaning to be less similar than those with the same.
func TestModel_Meaning(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"What food must I avoid?", "I am allergic to peanuts", "the train leaves at nine"},
		{"Which instrument does she play?", "she plays the violin", "the rent went up again"},
		{"our new puppy", "we adopted a dog", "the invoice is due"},
		{"medicine of my doctor", "she prescribed aspirin", "a table of plywood"},
	} {
		q := vector(c[0])
		if same, other := vectors.Dot(q, vector(c[1])), vectors.Dot(q, vector(c[2])); same < other+0.1 {
			t.Errorf("%q: %q %.2f, %q %.2f", c[0], c[1], same, c[2], other)
		}
	}
}

func TestModel_UnknownWords(t *testing.T) {
	t.Parallel()
	if !slices.Equal(vector("🙂 \u200b"), make([]float32, Dimensions)) {
		t.Error("a text without words has a vector")
	}
	if (&Model{}).tokens(nil, "word") != nil {
		t.Error("a model without words returned a token")
	}
}

func BenchmarkModel_Text(b *testing.B) {
	text := "My sister Ines has just moved to Lisbon, she found a flat there. How should I handle the compost and the seedlings for my garden?"
	Default()
	for b.Loop() {
		vector(text)
	}
}
