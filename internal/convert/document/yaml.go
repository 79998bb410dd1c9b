package document

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// addBlankLines inserts an empty line before each section and each flow.
func addBlankLines(text string) string {
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

// OneLine replaces line breaks and control characters, for comments.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, s)
}

// encode returns the YAML node of a value of an Entry.
func encode(v any) *yaml.Node {
	switch v := v.(type) {
	case *Block:
		return encodeBlock(v)
	case []*Block:
		return encodeList(v)
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v {
			n.Content = append(n.Content, encode(item))
		}
		return n
	case NameList:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, item := range v {
			n.Content = append(n.Content, scalar(escapeEnv(item)))
		}
		return n
	case Expression:
		n := scalar(string(v))
		switch word := string(v); {
		case word == "true" || word == "false": // booleans are expressions without quotes
			n.Tag, n.Style = "!!bool", 0
		case n.Style == yaml.DoubleQuotedStyle && !strings.ContainsFunc(word, unicode.IsControl):
			n.Style = yaml.SingleQuotedStyle
		}
		return n
	case EnvText:
		return scalar(string(v))
	case Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: string(v)}
	case string:
		return scalar(escapeEnv(v))
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}
}

func encodeBlock(b *Block) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	if b.Inline {
		n.Style = yaml.FlowStyle
	}
	for _, e := range b.Entries {
		key := scalar(e.Key)
		var notes []string
		for line := range strings.Lines(e.Note) {
			notes = append(notes, "# "+OneLine(strings.TrimRight(line, "\n")))
		}
		key.HeadComment = strings.Join(notes, "\n")
		value := encode(e.Value)
		if b.Inline && strings.Contains(value.Value, "?") && value.Style == 0 {
			value.Style = yaml.DoubleQuotedStyle
		}
		n.Content = append(n.Content, key, value)
	}
	return n
}

func encodeList(all []*Block) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, item := range all {
		made := encode(item)
		if len(made.Content) > 0 { // the comment belongs above the dash
			made.HeadComment, made.Content[0].HeadComment = made.Content[0].HeadComment, ""
		}
		n.Content = append(n.Content, made)
	}
	return n
}

// escapeEnv keeps ${ of a string from being read as an environment variable: it
// writes the $ as the default of a variable that is never set.
func escapeEnv(s string) string {
	return strings.ReplaceAll(s, "${", "${LITERAL_DOLLAR:-$}{")
}

// scalar returns the node of a string: block style for several lines, quoted if it
// could be read as another type.
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
	case !isPlain(s):
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// isPlain reports whether a string needs no quotes, also in flow style.
func isPlain(s string) bool {
	if s == "" || strings.TrimSpace(s) != s || strings.ContainsAny(s, "{}[],#&*!|>'\"%@`\\") || strings.ContainsAny(s[:1], "-?:~=<.+0123456789") {
		return false
	}
	if strings.Contains(s, ": ") || strings.HasSuffix(s, ":") {
		return false
	}
	return !slices.Contains([]string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}, strings.ToLower(s))
}

// maxLineWidth is a width that no line reaches: an expression of several lines is hard to read.
const maxLineWidth = 1 << 20
