package promptflow

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/source"
)

// template is a Jinja template with the messages of a chat.
type template struct {
	sections []section
	history  bool // it has the messages of the conversation
}

// section is the text of one message.
type section struct {
	role   string // empty for text before the first role
	marker string // the line with the role
	parts  []part
	at     int // offset in the file
}

// part is a text of a template, or a value in it.
type part struct {
	text string
	name string // of the value; empty for a text
	at   int    // offset in the file
}

func (p part) isValue() bool { return p.name != "" }

func hasValues(parts []part) bool { return slices.ContainsFunc(parts, part.isValue) }

// literal returns the text of parts without values.
func literal(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.text)
	}
	return b.String()
}

var (
	loop = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)\{%[-+]?\s*for\s+[\w, ]+\s+in\s+(\w+)\s*[-+]?%\}.*?\{%[-+]?\s*endfor\s*[-+]?%\}`)
	})
	marker = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?im)^[ \t]*#?[ \t]*(system|developer|user|assistant|function|tool)[ \t]*:[ \t]*\r?$\n?`)
	})
	block = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)\{\{[-+]?(.*?)[-+]?\}\}|\{%[-+]?(.*?)[-+]?%\}|\{#.*?#\}`)
	})
	word = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_]\w*$`) })
)

// parse reads a template, which begins at an offset of the file. history is the name of the
// value with the conversation; a loop over it is what the memory sends.
func (c *conversion) parse(file *source.File, from int, history string) template {
	var t template
	text := loop().ReplaceAllStringFunc(string(file.Text[from:]), func(whole string) string {
		if history == "" || loop().FindStringSubmatch(whole)[1] != history {
			return whole
		}
		t.history = true
		return strings.Repeat(" ", len(whole)) // offsets stay
	})
	at, role, line := 0, "", ""
	add := func(end int) {
		parts := c.split(file, text[at:end], from+at)
		if role != "" || len(parts) > 0 {
			t.sections = append(t.sections, section{role: role, marker: line, parts: parts, at: from + at})
		}
	}
	for _, m := range marker().FindAllStringSubmatchIndex(text, -1) {
		add(m[0])
		at, role, line = m[1], strings.ToLower(text[m[2]:m[3]]), text[m[0]:m[1]]
	}
	add(len(text))
	return t
}

// split returns the parts of a text, without white space at its ends.
func (c *conversion) split(file *source.File, text string, from int) []part {
	var parts []part
	add := func(start, end int) {
		if start < end {
			parts = append(parts, part{text: text[start:end], at: from + start})
		}
	}
	at := 0
	for _, m := range block().FindAllStringSubmatchIndex(text, -1) {
		add(at, m[0])
		at = m[1]
		where := input.Bytes(file, from+m[0], m[1]-m[0])
		switch {
		case m[4] >= 0:
			c.Add(input.Unsupported.At(where, "{%% %s %%} is not converted; the text in it is always there", strings.TrimSpace(text[m[4]:m[5]])))
		case m[2] >= 0:
			name := strings.TrimSpace(text[m[2]:m[3]])
			if word().MatchString(name) {
				parts = append(parts, part{name: name, at: from + m[0]})
				continue
			}
			c.Add(input.Unsupported.At(where, "the expression %s is not converted; it stays in the text", name))
			add(m[0], m[1])
		}
	}
	add(at, len(text))
	return trimmed(parts)
}

// trimmed removes white space at the ends.
func trimmed(parts []part) []part {
	for len(parts) > 0 && !parts[0].isValue() {
		if parts[0].text = strings.TrimLeft(parts[0].text, " \t\r\n"); parts[0].text != "" {
			break
		}
		parts = parts[1:]
	}
	for len(parts) > 0 && !parts[len(parts)-1].isValue() {
		last := &parts[len(parts)-1]
		if last.text = strings.TrimRight(last.text, " \t\r\n"); last.text != "" {
			break
		}
		parts = parts[:len(parts)-1]
	}
	return parts
}

// bind returns the template of QType for parts, and the variables that it reads. Constants
// are part of the text.
func (c *conversion) bind(parts []part, values []input.Pair, file *source.File) (text string, reads []string) {
	var b strings.Builder
	for _, p := range parts {
		if !p.isValue() {
			b.WriteString(escape(p.text))
			continue
		}
		i := slices.IndexFunc(values, func(v input.Pair) bool { return v.Key == p.name })
		if i < 0 {
			c.Add(input.Malformed.At(input.Bytes(file, p.at, 1), "the template reads %s, which the node does not have as an input", p.name))
			continue
		}
		v := values[i].Value
		id := c.value(v)
		if id == "" {
			if _, isReference := reference(v.Scalar()); !isReference && v.Kind < input.List {
				b.WriteString(escape(v.Scalar()))
			} else if v.Kind >= input.List {
				c.Unsupported(v, "a template writes the input %s, %s, as Python does; it is not converted", p.name, v.Kind.Noun())
			}
			continue
		}
		if !slices.Contains(reads, id) {
			reads = append(reads, id)
		}
		b.WriteString("{" + id + "}")
	}
	return b.String(), reads
}

func escape(text string) string { return strings.NewReplacer("{", "{{", "}", "}}").Replace(text) }
