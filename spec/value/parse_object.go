package value

import (
	"encoding/json"
	"slices"
	"strings"
)

// ParseObject reads one JSON object as a row of a file: the names of its members,
// in order, and a value for each. Of equal names the last value counts, in the
// place of the first. Numbers at the top level stay json.Number, with their
// digits as written; what is nested is as Parse returns it.
//
// header is what the call for the row before returned. If the names are the same,
// ParseObject returns that slice, so rows of one shape share their names. The
// error is a *SyntaxError.
func ParseObject(text string, header []string) (names []string, values []any, err error) {
	p := &parser{text: text}
	if p.peek() != '{' {
		return nil, nil, p.fail("expected an object, found %s", p.found())
	}
	p.at++
	p.depth = 1
	row := rowBuilder{header: header, shared: true, values: make([]any, 0, max(len(header), 4))}
	if p.peek() == '}' {
		p.at++
	} else if err := p.members(&row); err != nil {
		return nil, nil, err
	}
	if p.blanks(); p.at < len(text) {
		return nil, nil, p.fail("there is more after the object")
	}
	return row.columns(), row.values, nil
}

// members reads the members of an object up to and with its closing brace.
func (p *parser) members(row *rowBuilder) error {
	for {
		key, err := p.key()
		if err != nil {
			return err
		}
		v, err := p.literal()
		if err != nil {
			return err
		}
		row.set(key, v)
		if more, err := p.more('}'); err != nil || !more {
			return err
		}
	}
}

// key reads a key and the colon after it.
func (p *parser) key() (string, error) {
	if p.peek() != '"' {
		return "", p.fail("expected a key in quotes, found %s", p.found())
	}
	key, err := p.str()
	if err != nil {
		return "", err
	}
	if p.peek() != ':' {
		return "", p.fail("expected :, found %s", p.found())
	}
	p.at++
	return key, nil
}

// literal reads a value; a number keeps its digits.
func (p *parser) literal() (any, error) {
	if c := p.peek(); c != '-' && (c < '0' || c > '9') {
		return p.whole()
	}
	start := p.at
	if err := p.skipNumber(); err != nil {
		return nil, err
	}
	return json.Number(p.text[start:p.at]), nil
}

// rowBuilder collects names and values. As long as the names are those of header
// it stores none.
type rowBuilder struct {
	header []string
	shared bool     // the names so far are those of header
	names  []string // the names so far, once shared is false
	values []any
}

func (r *rowBuilder) set(name string, v any) {
	n := len(r.values)
	if r.shared && n < len(r.header) && r.header[n] == name {
		r.values = append(r.values, v)
		return
	}
	if r.shared {
		r.names, r.shared = slices.Clone(r.header[:min(n, len(r.header))]), false
	}
	for i, known := range r.names {
		if known == name {
			r.values[i] = v
			return
		}
	}
	r.names = append(r.names, strings.Clone(name)) // a name must not keep the row's text in memory
	r.values = append(r.values, v)
}

func (r *rowBuilder) columns() []string {
	if r.shared {
		return r.header[:len(r.values):len(r.values)]
	}
	return r.names
}
