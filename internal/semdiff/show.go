package semdiff

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/spec/source"
)

// The most that is shown of a value in one line, in characters, and of a text's
// lines on either side.
const (
	maxValue = 60
	maxLines = 4
)

// hidden stands for a secret.
const hidden = "***"

// maybeSecretKeys is a key whose value may be a secret although the language does not
// know it: a header, an argument of a client.
var maybeSecretKeys = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(key|token|secret|passw|auth|cookie|credential|signature)[a-z_-]*$`)
})

// inside are secrets within a text: the password of a URL, a credential of a header, a query or a program's argument.
var inside = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(://[^/\s:@]*:)[^@\s/]+(@)|\b((?:bearer|basic)\s+)\S+|((?:[?&]|--?)[a-z_-]*(?:key|token|secret|sig|passw)[a-z_-]*=)[^&\s]+`)
})

// notDelicate are keys of the language that count tokens or refer by id.
func notDelicate(key string) bool {
	return slices.Contains([]string{"auth", "tokenizer", "max_tokens", "tokens", "tokens_per_minute", "token_limit",
		"chat_history_token_ratio", "token_flush_size", "token_url"}, key)
}

// show fills in the message and the values of a change.
func (d valueChange) show(c *Change) {
	hide := d.isDelicate()
	old, now := d.old.shown(hide), d.new.shown(hide)
	c.Old, c.New = Version{d.old.span, old}, Version{d.new.span, now}
	switch {
	case d.new.shape == absent && d.old.shape == record:
		c.Message = d.key + ": removed"
	case d.old.shape == absent && d.new.shape == record:
		c.Message = d.key + ": added"
	case hide && d.old.shape == d.new.shape:
		c.Message = d.key + ": another value (" + hidden + ")"
	case d.oldAndNew(text) && (isLong(d.old) || isLong(d.new)):
		c.Message = d.key + ": another text"
		c.Lines = changedLines(d.old.source(), d.new.source())
		c.Old.Value, c.New.Value = mask(d.old.source()), mask(d.new.source())
	case d.oldAndNew(list) && !(d.old.flat() && d.new.flat()):
		i := d.firstDifferent()
		c.Message = fmt.Sprintf("%s: %s → %s, from item %d on", d.key, old, now, i+1)
		c.Old.Span, c.New.Span = d.old.itemSpan(i), d.new.itemSpan(i)
	case old == now:
		c.Message = d.key + ": another value: " + now
	default:
		c.Message = fmt.Sprintf("%s: %s → %s", d.key, old, now)
	}
}

// isDelicate tells whether the values must not be shown. A number is no secret:
// max_completion_tokens.
func (d valueChange) isDelicate() bool {
	if d.old.secret || d.new.secret {
		return true
	}
	key := d.key[strings.LastIndexByte(d.key, '.')+1:]
	return maybeSecretKeys().MatchString(key) && !notDelicate(key) && d.old.shape != number && d.new.shape != number
}

// oldAndNew tells whether both values are of a shape.
func (d valueChange) oldAndNew(s shape) bool { return d.old.shape == s && d.new.shape == s }

// firstDifferent is the index of the first item in which two lists differ.
func (d valueChange) firstDifferent() int {
	i := 0
	for i < len(d.old.parts) && i < len(d.new.parts) && d.old.parts[i].tree.same(d.new.parts[i].tree) {
		i++
	}
	return i
}

// itemSpan is the place of an item, or of the list where it has none so far.
func (t *tree) itemSpan(i int) source.Span {
	if i < len(t.parts) {
		return t.parts[i].tree.span
	}
	return t.span
}

func isLong(t *tree) bool {
	return strings.ContainsRune(t.text, '\n') || len([]rune(t.text)) > maxValue
}

// shown is a value on one line.
func (t *tree) shown(hide bool) string {
	switch {
	case t.shape == absent:
		return "not set"
	case hide || t.secret:
		return hidden
	case t.shape == text:
		return shorten(quote(mask(t.source())))
	case t.shape == list && t.flat():
		var items []string
		for i, p := range t.parts {
			items = append(items, p.tree.shown(i > 0 && isFlag(t.parts[i-1].tree.text)))
		}
		return shorten("[" + strings.Join(items, ", ") + "]")
	case t.shape == list && len(t.parts) == 1:
		return "1 item"
	case t.shape == list:
		return fmt.Sprintf("%d items", len(t.parts))
	case t.shape == record:
		return shorten("{" + strings.Join(keysOf(t), ", ") + "}")
	}
	return t.text
}

// isFlag tells whether an argument of a program says that the next one is a secret.
func isFlag(arg string) bool {
	return strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") && maybeSecretKeys().MatchString(arg)
}

// flat tells whether a list holds scalars alone.
func (t *tree) flat() bool {
	return !slices.ContainsFunc(t.parts, func(p part) bool { return p.tree.shape == list || p.tree.shape == record })
}

// source is a text as the document says it where environment variables are set
// in: what they hold is nobody's business.
func (t *tree) source() string {
	if written := writtenAt(t.span); strings.Contains(written, "${") {
		return strings.Trim(written, `"'`)
	}
	return t.text
}

// writtenAt is the text of a stretch of a file.
func writtenAt(s source.Span) string {
	if s.IsZero() || s.Start.Line == 0 {
		return ""
	}
	var lines []string
	for n := s.Start.Line; n <= s.End.Line; n++ {
		line := []rune(s.File.Line(n))
		if n == s.End.Line {
			line = line[:min(max(s.End.Column-1, 0), len(line))]
		}
		if n == s.Start.Line {
			line = line[min(s.Start.Column-1, len(line)):]
		}
		lines = append(lines, string(line))
	}
	return strings.Join(lines, "\n")
}

// changedLines are the lines of two texts without those that both begin and end with.
func changedLines(old, now string) []string {
	a, b := strings.Split(mask(old), "\n"), strings.Split(mask(now), "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return append(signed("- ", a), signed("+ ", b)...)
}

func signed(sign string, lines []string) []string {
	var shown []string
	for i, line := range lines {
		if i == maxLines && len(lines) > maxLines+1 {
			return append(shown, fmt.Sprintf("%s… %d more lines", sign, len(lines)-maxLines))
		}
		shown = append(shown, sign+plain(line))
	}
	return shown
}

// mask hides secrets inside of a text.
func mask(s string) string { return inside().ReplaceAllString(s, "${1}${3}${4}"+hidden+"${2}") }

// quote puts a text in quotes unless it is one plain word.
func quote(s string) string {
	if s != "" && !strings.ContainsAny(s, " \"'{}[],:#") || strings.Contains(s, "://") {
		return plain(s)
	}
	return strconv.Quote(s)
}

// plain is a text as it is, or quoted where a terminal would act upon it.
func plain(s string) string {
	if q := strconv.Quote(s); len(q) != len(s)+2+strings.Count(s, `"`)+strings.Count(s, `\`) || s == "" {
		return q
	}
	return s
}

// shorten cuts a text that does not fit.
func shorten(s string) string {
	if r := []rune(s); len(r) > maxValue {
		return string(r[:maxValue-1]) + "…"
	}
	return s
}

// keysOf are the keys of records, each once, in order.
func keysOf(trees ...*tree) []string {
	var keys []string
	for _, t := range trees {
		for _, p := range t.parts {
			keys = append(keys, p.key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// sorted is the tree with its items in an order of their own.
func (t *tree) sorted() *tree {
	s := *t
	s.parts = slices.Clone(t.parts)
	slices.SortFunc(s.parts, func(a, b part) int { return cmp.Compare(a.tree.digest(), b.tree.digest()) })
	return &s
}

// thousands is 50,000.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
