package reference

import (
	"strings"

	"github.com/qtype-dev/qtype/internal/textfmt"
)

const (
	width  = 100 // columns of a line
	indent = "  "
)

// String returns the description of the type: what it is, its keys and an example.
func (e *Entry) String() string {
	var b strings.Builder
	b.WriteString(e.Name + "\n\n")
	for i, paragraph := range e.Text {
		if i == 1 {
			b.WriteString("\n")
		}
		b.WriteString(wrapAll("", []string{paragraph}))
	}
	if len(e.Keys) > 0 {
		b.WriteString("\nKeys:\n\n")
	}
	for _, k := range e.Keys {
		b.WriteString(indent + k.Name + " (" + k.value() + ")\n" + wrapAll(indent+indent, k.Description))
	}
	if e.Example != "" {
		b.WriteString("\nExample:\n\n" + indented(e.Example, indent+indent) + "\n")
	}
	if e.Option != "" {
		b.WriteString("\nThe values of " + e.Option + ":\n")
	}
	for _, o := range e.Options {
		b.WriteString("\n" + indent + strings.Join(o.Names, ", ") + "\n" + indented(o.text(), indent))
	}
	return b.String()
}

// value returns what the value of a key is, and whether it must be written.
func (k *Key) value() string {
	switch {
	case k.Required:
		return k.Value + "; required"
	case k.Default != "":
		return k.Value + "; default " + k.Default
	}
	return k.Value
}

// text returns the description of a key that is explained alone.
func (k *Key) text() string {
	return strings.ToUpper(k.Value[:1]) + k.value()[1:] + ".\n\n" + wrapAll("", k.Description)
}

// text returns what an implementation is, and its keys.
func (o *Option) text() string {
	var b strings.Builder
	b.WriteString(wrapAll(indent, o.Text))
	if len(o.Keys) > 0 {
		b.WriteString("\n" + indent + "Keys of " + o.Under + ":\n\n")
	}
	for _, k := range o.Keys {
		b.WriteString(indent + indent + k.Name + " (" + k.value() + ")\n" + wrapAll(indent+indent+indent, k.Description))
	}
	return b.String()
}

// indented returns lines with a prefix; empty lines remain empty.
func indented(text, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString(prefix)
		}
		b.WriteString(line)
	}
	return b.String()
}

// wrapAll returns paragraphs with lines of at most width columns, each of which begins with a prefix.
func wrapAll(prefix string, paragraphs []string) string {
	var b strings.Builder
	for _, p := range paragraphs {
		b.WriteString(textfmt.Wrap(p, width, prefix, prefix))
	}
	return b.String()
}
