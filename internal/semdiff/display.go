package semdiff

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// The display limits: characters of a value, and changed lines of a text in each
// document.
const (
	maxValue = 60
	maxLines = 4
)

const hidden = "***"

// secretKeyPattern matches keys whose values may be secrets although the language
// does not declare them so: headers, arguments of a client.
var secretKeyPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(key|token|secret|passw|auth|cookie|credential|signature)[a-z_-]*$`)
})

// secretsInText matches secrets within a text: the password of a URL, a credential
// of a header, a query or a program's argument.
var secretsInText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(://[^/\s:@]*:)[^@\s/]+(@)|\b((?:bearer|basic)\s+)\S+|((?:[?&]|--?)[a-z_-]*(?:key|token|secret|sig|passw)[a-z_-]*=)[^&\s]+`)
})

// isKnownKey reports whether a key of the language matches the pattern without
// being secret: it counts tokens or refers to an id.
func isKnownKey(key string) bool {
	return slices.Contains([]string{"auth", "tokenizer", "max_tokens", "tokens", "tokens_per_minute", "token_limit",
		"chat_history_token_ratio", "token_flush_size", "token_url"}, key)
}

// describe sets the message and the values of a change.
func (d valueChange) describe(c *Change) {
	hide := d.isSecret()
	old, now := d.old.display(hide), d.new.display(hide)
	c.Old, c.New = Version{d.old.span, old}, Version{d.new.span, now}
	switch {
	case d.new.shape == absent && d.old.shape == record:
		c.Message = d.key + ": removed"
	case d.old.shape == absent && d.new.shape == record:
		c.Message = d.key + ": added"
	case hide && d.old.shape == d.new.shape:
		c.Message = d.key + ": value changed (" + hidden + ")"
	case d.oldAndNew(stringValue) && (isLong(d.old) || isLong(d.new)):
		c.Message = d.key + ": text changed"
		c.Lines = changedLines(d.old.sourceText(), d.new.sourceText())
		c.Old.Value, c.New.Value = mask(d.old.sourceText()), mask(d.new.sourceText())
	case d.oldAndNew(list) && !(d.old.isFlat() && d.new.isFlat()):
		i := d.firstDifferent()
		c.Message = fmt.Sprintf("%s: %s → %s, from item %d on", d.key, old, now, i+1)
		c.Old.Span, c.New.Span = d.old.itemSpan(i), d.new.itemSpan(i)
	case old == now:
		c.Message = d.key + ": value changed: " + now
	default:
		c.Message = fmt.Sprintf("%s: %s → %s", d.key, old, now)
	}
}

// isSecret reports whether the values must not be shown. Numbers are no secrets:
// max_completion_tokens.
func (d valueChange) isSecret() bool {
	if d.old.secret || d.new.secret {
		return true
	}
	key := d.key[strings.LastIndexByte(d.key, '.')+1:]
	return secretKeyPattern().MatchString(key) && !isKnownKey(key) && d.old.shape != number && d.new.shape != number
}

// oldAndNew reports whether both values have a shape.
func (d valueChange) oldAndNew(s shape) bool { return d.old.shape == s && d.new.shape == s }

// firstDifferent returns the index of the first item in which two lists differ.
func (d valueChange) firstDifferent() int {
	i := 0
	for i < len(d.old.parts) && i < len(d.new.parts) && d.old.parts[i].tree.equal(d.new.parts[i].tree) {
		i++
	}
	return i
}

// itemSpan returns the position of an item, or of the list if it has fewer items.
func (t *tree) itemSpan(i int) source.Span {
	if i < len(t.parts) {
		return t.parts[i].tree.span
	}
	return t.span
}

func isLong(t *tree) bool {
	return strings.ContainsRune(t.text, '\n') || len([]rune(t.text)) > maxValue
}

// display formats a value in one line.
func (t *tree) display(hide bool) string {
	switch {
	case t.shape == absent && len(t.variables) == 0:
		return "not set"
	case hide || t.secret:
		return hidden
	case t.shape == stringValue:
		return textfmt.Ellipsis(quote(mask(t.sourceText())), maxValue)
	case t.shape == list && t.isFlat():
		var items []string
		for i, p := range t.parts {
			items = append(items, p.tree.display(i > 0 && isSecretFlag(t.parts[i-1].tree.text)))
		}
		return textfmt.Ellipsis("["+strings.Join(items, ", ")+"]", maxValue)
	case t.shape == list && len(t.parts) == 1:
		return "1 item"
	case t.shape == list:
		return fmt.Sprintf("%d items", len(t.parts))
	case t.shape == record:
		return textfmt.Ellipsis("{"+strings.Join(keysOf(t), ", ")+"}", maxValue)
	}
	return t.text
}

// isSecretFlag reports whether the argument after this one is a secret.
func isSecretFlag(arg string) bool {
	return strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") && secretKeyPattern().MatchString(arg)
}

// isFlat reports whether a list contains only scalars.
func (t *tree) isFlat() bool {
	return !slices.ContainsFunc(t.parts, func(p part) bool { return p.tree.shape == list || p.tree.shape == record })
}

// sourceText returns a text as it is in the document if it contains environment
// variables: their values may be secret.
func (t *tree) sourceText() string {
	if written := textAt(t.span); strings.Contains(written, "${") {
		return strings.Trim(written, `"'`)
	}
	return t.text
}

// textAt returns the text of a span.
func textAt(s source.Span) string {
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

// changedLines returns the lines of two texts without their common first and last
// lines.
func changedLines(old, now string) []string {
	a, b := strings.Split(mask(old), "\n"), strings.Split(mask(now), "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return append(withSign("- ", a), withSign("+ ", b)...)
}

func withSign(sign string, lines []string) []string {
	var shown []string
	for i, line := range lines {
		if i == maxLines && len(lines) > maxLines+1 {
			return append(shown, fmt.Sprintf("%s… %d more lines", sign, len(lines)-maxLines))
		}
		shown = append(shown, sign+printable(line))
	}
	return shown
}

// mask replaces the secrets within a text.
func mask(s string) string { return secretsInText().ReplaceAllString(s, "${1}${3}${4}"+hidden+"${2}") }

// quote quotes a text unless it is a plain word.
func quote(s string) string {
	if s != "" && !strings.ContainsAny(s, " \"'{}[],:#") || strings.Contains(s, "://") {
		return printable(s)
	}
	return strconv.Quote(s)
}

// printable quotes a text that contains control characters.
func printable(s string) string {
	if q := strconv.Quote(s); len(q) != len(s)+2+strings.Count(s, `"`)+strings.Count(s, `\`) || s == "" {
		return q
	}
	return s
}

// keysOf returns the keys of records, sorted and without repetition.
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

// sorted returns the tree with its items sorted by content.
func (t *tree) sorted() *tree {
	s := *t
	s.parts = slices.Clone(t.parts)
	slices.SortFunc(s.parts, func(a, b part) int { return cmp.Compare(a.tree.digest(), b.tree.digest()) })
	return &s
}

// Text writes changes as text, grouped by impact and entity. color adds ANSI
// colours to the headings.
func Text(w io.Writer, changes []Change, color bool) error {
	var b strings.Builder
	var last Change
	for i, c := range changes {
		if i == 0 || c.Impact != last.Impact {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(heading(c.Impact, Count(changes, c.Impact), color) + "\n")
		}
		if i == 0 || c.Impact != last.Impact || c.Subject() != last.Subject() {
			b.WriteString("  " + c.Subject() + "\n")
		}
		c.write(&b)
		last = c
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Subject returns the changed entity: "flow talk", "step respond of flow talk".
func (c Change) Subject() string {
	s := string(c.Kind)
	if c.ID != "" {
		s += " " + printable(c.ID)
	}
	if c.Flow != "" {
		s += " of flow " + printable(c.Flow)
	}
	return s
}

// write prints a change below its subject.
func (c Change) write(b *strings.Builder) {
	fmt.Fprintf(b, "    %s  %s\n", c.Message, locations(c.Old.Span, c.New.Span))
	for _, line := range c.Lines {
		fmt.Fprintf(b, "      %s\n", line)
	}
	if c.Reason != "" {
		fmt.Fprintf(b, "      %s\n", c.Reason)
	}
}

// locations returns the positions in the two documents, in brackets.
func locations(old, now source.Span) string {
	switch {
	case old.IsZero() && now.IsZero():
		return ""
	case old.IsZero():
		return "[" + printable(now.String()) + "]"
	case now.IsZero():
		return "[was " + printable(old.String()) + "]"
	}
	return "[" + printable(old.String()) + " → " + printable(now.String()) + "]"
}

func heading(impact Impact, n int, color bool) string {
	title := fmt.Sprintf("%s (%d)", impact, n)
	if !color {
		return title
	}
	code := map[Impact]string{Breaking: "1;31", Behaviour: "1;33"}[impact]
	if code == "" {
		code = "1"
	}
	return "\x1b[" + code + "m" + title + "\x1b[0m"
}

// Summary returns a text such as "6 changes: 2 breaking, 1 of behaviour, 3
// harmless".
func Summary(changes []Change) string {
	var parts []string
	for _, impact := range impacts() {
		n := Count(changes, impact)
		switch {
		case n == 0:
			continue
		case impact == Behaviour:
			parts = append(parts, fmt.Sprintf("%d of behaviour", n))
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, impact))
		}
	}
	if len(parts) == 0 {
		return "no difference in meaning"
	}
	noun := "changes: "
	if len(changes) == 1 {
		noun = "change: "
	}
	return fmt.Sprint(len(changes), " ", noun, strings.Join(parts, ", "))
}

// report is the JSON form of a comparison.
type report struct {
	Old       string       `json:"old"`       // the path of the old document
	New       string       `json:"new"`       // the path of the new document
	Breaking  int          `json:"breaking"`  // how many changes break callers or stored data
	Behaviour int          `json:"behaviour"` // how many changes affect the answers
	Harmless  int          `json:"harmless"`  // how many changes do neither
	Changes   []changeJSON `json:"changes"`   // worst first
}

// changeJSON is the JSON form of a change.
type changeJSON struct {
	Class   Impact       `json:"class"`
	Change  ChangeKind   `json:"change"`
	Kind    spec.Kind    `json:"kind"`             // of the entity
	ID      string       `json:"id"`               // of the entity
	Flow    string       `json:"flow,omitempty"`   // the flow of a step or variable
	Field   string       `json:"field,omitempty"`  // the key, with dots
	Message string       `json:"message"`          // the change in one line
	Reason  string       `json:"reason,omitempty"` // of the impact
	Old     *versionJSON `json:"old,omitempty"`    // in the old document
	New     *versionJSON `json:"new,omitempty"`    // in the new document
}

// versionJSON is the JSON form of a Version.
type versionJSON struct {
	File   string `json:"file"`
	Line   int    `json:"line"`            // 1-based
	Column int    `json:"column"`          // 1-based, in characters
	Value  string `json:"value,omitempty"` // *** for a secret
}

// JSON writes the paths, the numbers and the changes as one object.
func JSON(w io.Writer, old, now string, changes []Change) error {
	r := report{Old: old, New: now, Breaking: Count(changes, Breaking), Behaviour: Count(changes, Behaviour),
		Harmless: Count(changes, Harmless), Changes: []changeJSON{}}
	for _, c := range changes {
		r.Changes = append(r.Changes, changeJSON{Class: c.Impact, Change: c.Action, Kind: c.Kind, ID: c.ID, Flow: c.Flow, Field: c.Field,
			Message: c.Message, Reason: c.Reason, Old: c.Old.json(), New: c.New.json()})
	}
	return textfmt.WriteJSON(w, r)
}

func (s Version) json() *versionJSON {
	if s.Span.IsZero() {
		return nil
	}
	return &versionJSON{s.Span.File.Path, s.Span.Start.Line, s.Span.Start.Column, s.Value}
}
