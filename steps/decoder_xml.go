package steps

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/qtype-dev/qtype/spec/value"
)

// findXML finds the first element whose children good accepts, else the first element.
func (d *decoder) findXML(text string, good func(*value.Record) bool) (*value.Record, error) {
	if text = value.AnswerText(text); text == "" {
		return nil, errors.New("the text is empty, expected an XML element")
	}
	var first *value.Record
	var failure error
	for _, part := range candidates(text) {
		part = escapeAmpersands(part)
		for at, n := elementStart(part, 0), 0; at >= 0 && n < maxCandidates; at, n = elementStart(part, at+1), n+1 {
			r, end, err := d.element(part[at:])
			switch {
			case err != nil && failure == nil:
				failure = err
			case err == nil && good(r):
				return r, nil
			case err == nil && first == nil && failure == nil: // otherwise it may be part of a truncated element
				first = r
			}
			at += end
		}
	}
	switch {
	case first != nil:
		return first, nil
	case failure != nil:
		return nil, fmt.Errorf("invalid XML: %w", failure)
	}
	return nil, fmt.Errorf("no XML element in the text: %s", value.Describe(text))
}

// elementStart returns the index of the next text that may be an element, -1 for none.
func elementStart(text string, from int) int {
	for i := from; i+1 < len(text); i++ {
		if c := text[i+1]; text[i] == '<' && (c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '?') {
			return i
		}
	}
	return -1
}

// element reads one element: the name of each direct child with its text. Of
// repeated names the last counts, all of them where the output is a list. An empty
// child is null. end is the number of bytes read.
func (d *decoder) element(text string) (r *value.Record, end int, err error) {
	dec := xml.NewDecoder(strings.NewReader(text))
	dec.Entity = xml.HTMLEntity
	c := &children{values: map[string][]any{}}
	for depth := 0; ; {
		token, err := dec.Token()
		if err != nil {
			return nil, 0, xmlError(err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			depth++
			c.open(depth, t.Name.Local)
		case xml.CharData:
			c.text(depth, string(t))
		case xml.EndElement:
			c.close(depth)
			if depth--; depth == 0 {
				return d.record(c), int(dec.InputOffset()), nil
			}
		}
	}
}

// children collects the direct children of the root.
type children struct {
	names  []string         // in the order of their first occurrence
	values map[string][]any // text or null, by name
	name   string           // name of the open child
	body   strings.Builder  // text of the open child before its first own child
	whole  bool             // whether the open child has had a child
}

// open begins an element; depth 1 is the root.
func (c *children) open(depth int, name string) {
	switch depth {
	case 2:
		c.name, c.whole = name, false
		c.body.Reset()
	case 3:
		c.whole = true
	}
}

// text adds to the text of a child; text after a grandchild is ignored.
func (c *children) text(depth int, s string) {
	if depth == 2 && !c.whole {
		c.body.WriteString(s)
	}
}

// close ends an element and stores a child.
func (c *children) close(depth int) {
	if depth != 2 {
		return
	}
	if _, ok := c.values[c.name]; !ok {
		c.names = append(c.names, c.name)
	}
	var v any
	if c.body.Len() > 0 {
		v = c.body.String()
	}
	c.values[c.name] = append(c.values[c.name], v)
}

// record makes an object from the children, as the types of the outputs require.
func (d *decoder) record(c *children) *value.Record {
	fields := make([]value.Field, len(c.names))
	for i, name := range c.names {
		all := c.values[name]
		fields[i] = value.Field{Name: name, Value: all[len(all)-1]}
		for _, out := range d.outs {
			switch {
			case out.of.ID != name:
			case out.of.Type.IsList():
				fields[i].Value = all
			case fields[i].Value == nil && out.of.Type.Is("text") && !out.of.IsOptional():
				fields[i].Value = "" // <note/> is an empty text where null is not allowed
			}
		}
	}
	return value.NewRecord("", fields...)
}

// xmlError rewrites an error of encoding/xml for users.
func xmlError(err error) error {
	var syntax *xml.SyntaxError
	switch {
	case errors.As(err, &syntax) && syntax.Msg == "unexpected EOF", errors.Is(err, io.EOF):
		return errors.New("unclosed element")
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d: %s", syntax.Line, syntax.Msg)
	}
	return err
}

// escapeAmpersands replaces & by &amp; where it begins no entity, outside of CDATA:
// models write "Smith & Sons". Entities are those of XML and HTML.
func escapeAmpersands(text string) string {
	if !strings.Contains(text, "&") {
		return text
	}
	var b strings.Builder
	for {
		plain, cdata, found := strings.Cut(text, "<![CDATA[")
		escapeInto(&b, plain)
		if !found {
			return b.String()
		}
		b.WriteString("<![CDATA[")
		inside, rest, closed := strings.Cut(cdata, "]]>")
		b.WriteString(inside)
		if !closed {
			return b.String()
		}
		b.WriteString("]]>")
		text = rest
	}
}

// escapeInto writes a text outside of CDATA.
func escapeInto(b *strings.Builder, text string) {
	for {
		before, after, found := strings.Cut(text, "&")
		b.WriteString(before)
		if !found {
			return
		}
		b.WriteByte('&')
		if !beginsEntity(after) {
			b.WriteString("amp;")
		}
		text = after
	}
}

// beginsEntity reports whether text, which follows an &, is the rest of an entity.
func beginsEntity(s string) bool {
	const longest = 32 // characters of a name
	end := strings.IndexByte(s[:min(len(s), longest)], ';')
	if end < 1 {
		return false
	}
	name := s[:end]
	switch name {
	case "lt", "gt", "amp", "quot", "apos":
		return true
	}
	if digits, ok := strings.CutPrefix(name, "#"); ok {
		hex, isHex := strings.CutPrefix(strings.ToLower(digits), "x")
		if isHex {
			return hex != "" && strings.Trim(hex, "0123456789abcdef") == ""
		}
		return digits != "" && isDigits(digits)
	}
	_, ok := xml.HTMLEntity[name]
	return ok
}
