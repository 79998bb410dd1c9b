package convert

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// application is the document that is made.
type application struct {
	head        []string // comments above everything
	id          string
	description string
	memories    []*block
	auths       []*block
	models      []*block
	tools       []*block
	types       []*inferredType // records, in the order in which they were met
	flows       []*flow
}

// block is a mapping of the document, in order.
type block struct {
	entries []entry
	inline  bool // it is written in one line
}

// entry is a key of a block. What it holds is a text, a formula, a number, a truth
// value, a block or a list of them, or a list in one line.
type entry struct {
	key   string
	value any
	note  string // a comment above the key
}

// inline is a list of names, written in one line.
type inline []string

// literal is a number as it is written.
type literal string

// formula is an expression.
type formula string

// verbatim is a text whose environment variables are meant.
type verbatim string

func (b *block) set(key string, value any) *block {
	b.entries = append(b.entries, entry{key: key, value: value})
	return b
}

// note sets a comment above the last key.
func (b *block) note(format string, args ...any) *block {
	last := &b.entries[len(b.entries)-1]
	if last.note != "" {
		last.note += "\n"
	}
	last.note += fmt.Sprintf(format, args...)
	return b
}

// text is the whole document.
func (a *application) text() string {
	root := new(block).set("id", a.id)
	if a.description != "" {
		root.set("description", a.description)
	}
	var types []*block
	for _, s := range a.types {
		types = append(types, s.declaration())
	}
	var flows []*block
	for _, f := range a.flows {
		flows = append(flows, f.declared())
	}
	for _, part := range []entry{{key: "memories", value: a.memories}, {key: "auths", value: a.auths}, {key: "models", value: a.models}, {key: "types", value: types}, {key: "tools", value: a.tools}, {key: "flows", value: flows}} {
		if len(part.value.([]*block)) > 0 {
			root.entries = append(root.entries, part)
		}
	}
	// A tree of nodes that was made here can always be written, and a buffer takes it.
	text, _ := yaml.Dump(encoded(root), yaml.WithV3Defaults(), yaml.WithIndent(2), yaml.WithLineWidth(unfolded))
	head := a.head
	if bytes.Contains(text, []byte("LITERAL_DOLLAR")) {
		head = append(head, "${LITERAL_DOLLAR:-$} is a $ before a brace, which would begin an environment variable.")
	}
	var out bytes.Buffer
	for _, line := range head {
		fmt.Fprintf(&out, "# %s\n", oneLine(line))
	}
	out.Write(text)
	return spaced(out.String())
}

// unfolded is a width that no line reaches: a folded expression is hard to read.
const unfolded = 1 << 20

// spaced puts an empty line before each section and each flow.
func spaced(text string) string {
	lines := strings.SplitAfter(text, "\n")
	var b strings.Builder
	flows := false
	for i, line := range lines {
		starts := line != "" && line[0] >= 'a' && line[0] <= 'z' && strings.HasSuffix(line, ":\n")
		item := flows && strings.HasPrefix(line, "  - ") && !strings.HasPrefix(lines[i-1], "flows:")
		if starts || item {
			b.WriteString("\n")
		}
		if starts {
			flows = line == "flows:\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// oneLine keeps a comment in its line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, s)
}

// encoded is a value as the YAML library writes it.
func encoded(v any) *yaml.Node {
	switch v := v.(type) {
	case *block:
		n := &yaml.Node{Kind: yaml.MappingNode}
		if v.inline {
			n.Style = yaml.FlowStyle
		}
		for _, e := range v.entries {
			key := scalar(e.key)
			var notes []string
			for line := range strings.Lines(e.note) {
				notes = append(notes, "# "+oneLine(strings.TrimRight(line, "\n")))
			}
			key.HeadComment = strings.Join(notes, "\n")
			value := encoded(e.value)
			if v.inline && strings.Contains(value.Value, "?") && value.Style == 0 {
				value.Style = yaml.DoubleQuotedStyle
			}
			n.Content = append(n.Content, key, value)
		}
		return n
	case []*block:
		return encodedList(v)
	case inline:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, item := range v {
			n.Content = append(n.Content, scalar(item))
		}
		return n
	case formula:
		n := scalar(string(v))
		switch word := string(v); {
		case word == "true" || word == "false": // they are expressions as they are
			n.Tag, n.Style = "!!bool", 0
		case n.Style == yaml.DoubleQuotedStyle && !strings.ContainsFunc(word, unicode.IsControl):
			n.Style = yaml.SingleQuotedStyle
		}
		return n
	case verbatim:
		return scalar(string(v))
	case literal:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: string(v)}
	case string:
		return scalar(literally(v))
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}
}

// encodedList is a list of blocks.
func encodedList(all []*block) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, item := range all {
		made := encoded(item)
		if len(made.Content) > 0 { // above the dash, not behind it
			made.HeadComment, made.Content[0].HeadComment = made.Content[0].HeadComment, ""
		}
		n.Content = append(n.Content, made)
	}
	return n
}

// literally keeps ${ of a text from being read as an environment variable: the $
// is the default of a variable that nobody sets.
func literally(s string) string {
	if !strings.Contains(s, "${") || !strings.Contains(s, "}") {
		return s
	}
	return strings.ReplaceAll(s, "${", "${LITERAL_DOLLAR:-$}{")
}

// scalar is a text. One of several lines is written as a block, one that could be
// read as something else in quotes.
func scalar(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	switch {
	case strings.ContainsFunc(s, func(r rune) bool {
		return r < 0x20 && r != '\n' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff
	}):
		n.Style = yaml.DoubleQuotedStyle
	case strings.Contains(s, "\n"):
		n.Style = yaml.LiteralStyle
		for line := range strings.SplitSeq(s, "\n") {
			if strings.TrimSpace(line) == "" && line != "" || strings.HasPrefix(s, " ") || strings.HasPrefix(s, "\n") {
				n.Style = yaml.DoubleQuotedStyle
			}
		}
	case !plain(s):
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// plain tells whether a text can stand without quotes, in lists of one line, too.
func plain(s string) bool {
	if s == "" || strings.TrimSpace(s) != s || strings.ContainsAny(s, "{}[],#&*!|>'\"%@`\\") || strings.ContainsAny(s[:1], "-?:~=<.+0123456789") {
		return false
	}
	if strings.Contains(s, ": ") || strings.HasSuffix(s, ":") {
		return false
	}
	return !slices.Contains([]string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}, strings.ToLower(s))
}

// names gives ids that are free: of the document, and of each flow's variables.
type names struct{ taken map[string]bool }

// id makes an id of a name: the name itself where it can be one and is free.
func (n *names) id(name, fallback string) string {
	made := slug(name)
	if made == "" {
		made = fallback
	}
	free := made
	for i := 2; n.taken[free]; i++ {
		free = fmt.Sprintf("%s_%d", made, i)
	}
	n.taken[free] = true
	return free
}

// slug keeps the letters of a name that every id may have; empty where there are none.
func slug(name string) string {
	made := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
			return r
		}
		return '_'
	}, strings.TrimSpace(name))
	for strings.Contains(made, "__") && !strings.Contains(name, "__") {
		made = strings.ReplaceAll(made, "__", "_")
	}
	made = strings.Trim(made, "_")
	if strings.Trim(made, "_-.") == "" {
		return ""
	}
	if c := made[0] | 0x20; c < 'a' || c > 'z' {
		made = "x" + made
	}
	return made
}
