package jsonpath

import (
	"strconv"
	"strings"

	"github.com/ohler55/ojg/jp"
)

// parser parses sums of products of paths, numbers, strings and parentheses.
type parser struct {
	text  string
	at    int // index of the next byte
	depth int // of parentheses
}

// maxDepth limits the nesting of parentheses.
const maxDepth = 100

func (p *parser) blanks() {
	for p.at < len(p.text) && strings.IndexByte(" \t\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// sign reads one of the operators, 0 if there is none.
func (p *parser) sign(of string) byte {
	p.blanks()
	if p.at < len(p.text) && strings.IndexByte(of, p.text[p.at]) >= 0 {
		p.at++
		return p.text[p.at-1]
	}
	return 0
}

func (p *parser) sum() (node, error) { return p.chain("+-", p.product) }

func (p *parser) product() (node, error) { return p.chain("*/", p.operand) }

// chain parses left-associative operators.
func (p *parser) chain(signs string, operand func() (node, error)) (node, error) {
	left, err := operand()
	for err == nil {
		s := p.sign(signs)
		if s == 0 {
			break
		}
		var right node
		if right, err = operand(); err == nil {
			left = operation{s, left, right}
		}
	}
	return left, err
}

func (p *parser) operand() (node, error) {
	p.blanks()
	rest := p.text[p.at:]
	switch {
	case rest == "":
		return nil, p.errorAt(p.at, 1, "unexpected end")
	case rest[0] == '(':
		return p.group()
	case rest[0] == '\'' || rest[0] == '"':
		end := strings.IndexByte(rest[1:], rest[0])
		if end < 0 {
			return nil, p.errorAtRest(p.at, "unclosed string %s", rest)
		}
		p.at += end + 2
		return literal{rest[1 : end+1]}, nil
	}
	if n := numberLength(rest); n > 0 {
		p.at += n
		if i, err := strconv.ParseInt(rest[:n], 10, 64); err == nil {
			return literal{i}, nil
		}
		f, err := strconv.ParseFloat(rest[:n], 64)
		return literal{f}, err
	}
	return p.path()
}

func (p *parser) group() (node, error) {
	p.at++
	if p.depth++; p.depth > maxDepth {
		return nil, p.errorAt(p.at-1, 1, "parentheses are nested deeper than %d levels", maxDepth)
	}
	defer func() { p.depth-- }()
	inner, err := p.sum()
	if err != nil {
		return nil, err
	}
	if p.sign(")") == 0 {
		return nil, p.errorAt(p.at, 1, "missing )")
	}
	return inner, nil
}

// numberLength returns the length of the number at the start of s, 0 if there is
// none.
func numberLength(s string) int {
	n := 0
	for n < len(s) && (s[n] >= '0' && s[n] <= '9' || n > 0 && s[n] == '.') {
		n++
	}
	if n < len(s) && strings.IndexByte(" \t\n+-*/)", s[n]) < 0 {
		return 0 // a name that begins with a digit
	}
	return n
}

// path parses a path: plain pieces with functions between them.
func (p *parser) path() (node, error) {
	var all node
	for {
		begin := p.at
		piece, err := p.piece()
		if err != nil {
			return nil, err
		}
		if all, err = p.follow(all, piece, begin); err != nil {
			return nil, err
		}
		if p.at >= len(p.text) || p.text[p.at] != '`' {
			break
		}
		name, _, closed := strings.Cut(p.text[p.at+1:], "`")
		if !closed {
			return nil, p.errorAtRest(p.at, "unclosed function %s", p.text[p.at:])
		}
		do, err := functionOf(name)
		if err != nil {
			return nil, p.errorAt(p.at, len(name)+2, "%s", err)
		}
		p.at += len(name) + 2
		all = functionCall{all, name, do}
	}
	return all, nil
}

// follow appends a plain piece, which has been read from an offset on, to a node.
func (p *parser) follow(from node, piece string, begin int) (node, error) {
	if n := strings.Index(p.text[begin:], piece); n > 0 {
		begin += n // after spaces
	}
	piece = strings.TrimSuffix(piece, ".") // before a function
	if from != nil && piece == "" {
		return from, nil
	}
	if from != nil {
		piece, begin = "$"+piece, begin-1
	}
	quoted := quoteNames(piece)
	path, err := jp.ParseString(quoted)
	switch {
	case err != nil:
		return nil, p.locate(err, quoted, begin, offsetsOf(piece, quoted))
	case len(path) == 0 && piece != "":
		return nil, p.errorAt(begin, len(piece), "invalid path segment %q", piece)
	case from == nil:
		return plain{path}, nil
	}
	return continuation{from, path}, nil
}

// piece reads up to the next function or operator outside of brackets and quotes. A
// minus is part of a name unless a space precedes it, and a star after a dot is a
// wildcard.
func (p *parser) piece() (string, error) {
	begin, open := p.at, 0
	for ; p.at < len(p.text); p.at++ {
		c := p.text[p.at]
		before := byte('.')
		if p.at > begin {
			before = p.text[p.at-1]
		}
		switch {
		case c == '\'' || c == '"':
			end := strings.IndexByte(p.text[p.at+1:], c)
			if end < 0 {
				return "", p.errorAtRest(p.at, "unclosed quote")
			}
			p.at += end + 1
		case c == '[' || c == '(':
			open++
		case open > 0 && (c == ']' || c == ')'):
			open--
		case open > 0:
		case c == '`', c == '+', c == ')', (c == '*' || c == '/') && before != '.', c == '-' && before == ' ':
			return strings.TrimSpace(p.text[begin:p.at]), nil
		}
	}
	return strings.TrimSpace(p.text[begin:]), nil
}

// quoteNames puts names with a minus into brackets, as the library accepts them
// only there: .content-type
func quoteNames(piece string) string {
	if !strings.Contains(piece, "-") {
		return piece
	}
	var b strings.Builder
	for i, open := 0, 0; i < len(piece); {
		n := 0
		for open == 0 && i+n < len(piece) && inName(piece[i+n]) {
			n++
		}
		name := piece[i : i+n]
		if strings.Contains(name, "-") {
			before := strings.TrimSuffix(b.String(), ".")
			if strings.HasSuffix(before, ".") { // a descent keeps both dots
				before += "."
			}
			b.Reset()
			b.WriteString(before + "['" + name + "']")
			i += n
			continue
		}
		n = max(n, 1)
		switch piece[i] {
		case '[', '(':
			open++
		case ']', ')':
			open--
		}
		b.WriteString(piece[i : i+n])
		i += n
	}
	return b.String()
}

// inName reports whether a byte can be part of a name.
func inName(c byte) bool {
	return c == '-' || c == '_' || c == '@' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}
