package conversation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// Typed replaces what people type into conversations and nobody should find in a test: keys of providers, numbers of payment
// cards and e-mail addresses. It is not safe for concurrent use.
type Typed struct {
	found [3][]string // keys, cards, addresses: each different one
}

// The patterns of what is replaced.
var (
	tokenText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[A-Za-z0-9_][A-Za-z0-9_.\-]{15,}`) })
	cardText  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b[2-6](?:[ -]?[0-9]){12,18}\b`) })
	mailText  = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`[A-Za-z0-9_][A-Za-z0-9._%+\-]*@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)*\.[A-Za-z]{2,}`)
	})
)

// Redact replaces keys and card numbers by ***, and each address by one of example.com.
func (t *Typed) Redact(text string) string {
	text = tokenText().ReplaceAllStringFunc(text, func(one string) string {
		if !redact.HasTokenPrefix(one) {
			return one
		}
		t.index(0, one)
		return redact.Mask
	})
	text = cardText().ReplaceAllStringFunc(text, func(one string) string {
		if !isCard(one) {
			return one
		}
		t.index(1, digitsOf(one))
		return redact.Mask
	})
	return mailText().ReplaceAllStringFunc(text, func(one string) string {
		if strings.HasSuffix(strings.ToLower(one), "example.com") {
			return one
		}
		return fmt.Sprintf("person%d@example.com", t.index(2, strings.ToLower(one))+1)
	})
}

// index returns the number of a text among those of its kind, from 0.
func (t *Typed) index(kind int, text string) int {
	i := slices.Index(t.found[kind], text)
	if i < 0 {
		i = len(t.found[kind])
		t.found[kind] = append(t.found[kind], text)
	}
	return i
}

// Summary says what was replaced: "1 key, 2 e-mail addresses"; empty for nothing.
func (t *Typed) Summary() string {
	var parts []string
	for kind, noun := range []string{"key", "card number", "e-mail address"} {
		if n := len(t.found[kind]); n > 0 {
			parts = append(parts, textfmt.Count(n, noun))
		}
	}
	return strings.Join(parts, ", ")
}

func digitsOf(text string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text)
}

// isCard reports whether a number has the check digit of payment cards (Luhn).
func isCard(text string) bool {
	digits, sum := digitsOf(text), 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}
