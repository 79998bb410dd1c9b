package splitter

import (
	"strings"

	"github.com/qtype-dev/qtype/internal/tokenizer"
)

// counter counts tokens as LlamaIndex does by default: with the encoding of
// gpt-3.5-turbo, in which the name of a special token is one token.
type counter struct{ encoding *tokenizer.Encoding }

func newCounter() (counter, error) {
	e, err := tokenizer.For(tokenizer.Cl100k)
	return counter{e}, err
}

// specialTokens are the names of special tokens of the encoding.
var specialTokens = []string{"<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|endofprompt|>"}

// count returns the number of tokens in a text.
func (c counter) count(text string) int {
	n := 0
	for from := 0; ; {
		at := strings.Index(text[from:], "<|")
		if at < 0 {
			return n + c.encoding.Count(text)
		}
		from += at
		name := specialAt(text[from:])
		if name == "" {
			from += len("<|")
			continue
		}
		n += c.encoding.Count(text[:from]) + 1
		text, from = text[from+len(name):], 0
	}
}

func specialAt(text string) string {
	for _, name := range specialTokens {
		if strings.HasPrefix(text, name) {
			return name
		}
	}
	return ""
}

// maxTokenLength is the length of the longest token, in bytes.
const maxTokenLength = 128

// fits returns the number of tokens in a text, and whether it is at most limit. The
// number is that of tokens only if they fit.
func (c counter) fits(text string, limit int) (n int, ok bool) {
	if len(text)/maxTokenLength > limit {
		return 0, false
	}
	n = c.count(text)
	return n, n <= limit
}
