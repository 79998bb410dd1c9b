// Package outline parses the structure of a YAML document that may be broken or
// half typed: which keys and items exist, and where. Parsing never fails; text
// that is not YAML only yields fewer nodes.
//
// It reads by indentation, one line at a time. Anchors and merge keys are not
// followed and most escape sequences are not decoded: use the YAML library where
// the exact value matters.
package outline

import "strings"

// MaxDepth bounds the nesting that [Parse] follows: of block collections, and of
// collections in brackets.
const MaxDepth = 200

// Kind is the kind of a node.
type Kind uint8

// The kinds of nodes.
const (
	Empty    Kind = iota // no value yet
	Scalar               // a single value
	Mapping              // keys and values
	Sequence             // a list
)

// Style is the notation of a scalar.
type Style uint8

// The styles of scalars.
const (
	Plain        Style = iota
	SingleQuoted       // '…'
	DoubleQuoted       // "…"
	Block              // | or >
	Alias              // *name
)

// Node is a value of the document. Offsets are in bytes.
type Node struct {
	Kind   Kind    // what the value is
	Start  int     // offset of the value; of a quoted scalar, of its opening quote
	End    int     // offset after the value
	Text   string  // the value of a scalar; only common escape sequences are decoded
	Style  Style   // the notation of a scalar
	Tag    string  // the tag, such as !include; empty for none
	Flow   bool    // the collection is in brackets
	Indent int     // the column of a block collection
	Pairs  []*Pair // the entries of a mapping
	Items  []*Node // the items of a sequence
	Dash   int     // offset of the dash of an item of a block sequence
}

// Pair is an entry of a mapping.
type Pair struct {
	Key   string // the key without quotes
	Start int    // offset of the key, quotes included
	End   int    // offset after the key
	Colon bool   // a colon follows the key; false for a key that is being typed
	Value *Node  // never nil
}

// Get returns the value of a key, or nil if the key or n is missing.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for _, p := range n.Pairs {
		if p.Key == key && p.Colon {
			return p.Value
		}
	}
	return nil
}

// GetText returns the text of the scalar of a key, or "" if there is none.
func (n *Node) GetText(key string) string {
	if v := n.Get(key); v != nil && v.Kind == Scalar {
		return v.Text
	}
	return ""
}

// Walk calls visit for n and all nodes below it, parents first.
func (n *Node) Walk(visit func(*Node)) {
	visit(n)
	for _, item := range n.Items {
		item.Walk(visit)
	}
	for _, p := range n.Pairs {
		p.Value.Walk(visit)
	}
}

// Parse returns the root of the first document in text.
func Parse(text string) *Node {
	p := &parser{text: text, root: &Node{}}
	for more := true; more && p.at < len(text); {
		more = p.line()
	}
	return p.root
}

// isSpace reports whether c is white space within a line.
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// isBlank reports whether c is white space or a line feed.
func isBlank(c byte) bool { return isSpace(c) || c == '\n' }

// isBlankAt reports whether text ends at the offset or has white space there.
func isBlankAt(text string, at int) bool { return at >= len(text) || isBlank(text[at]) }

// IsWordByte reports whether c may be part of an id or a key. Bytes of
// characters outside ASCII are.
func IsWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '$' || c >= 0x80
}

// unquote removes quotes and decodes the escape sequences that ids may hold.
func unquote(text string) string {
	if len(text) == 0 || text[0] != '"' && text[0] != '\'' {
		return text
	}
	quote := text[:1]
	text = strings.TrimSuffix(text[1:], quote)
	if quote == "'" {
		return strings.ReplaceAll(text, "''", "'")
	}
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\n`, "\n", `\t`, "\t").Replace(text)
}

// brackets reads a collection in brackets, which may span lines and may not be
// closed yet, and returns the offset after it. column is that of the key or dash
// before it.
func (p *parser) brackets(to *Node, at, column int) int {
	to.Kind, to.Flow, to.Start = Sequence, true, at
	closing := byte(']')
	if p.text[at] == '{' {
		to.Kind, closing = Mapping, '}'
	}
	p.flowDepth++
	defer func() { p.flowDepth-- }()
	at++
	for {
		at = p.skipFlow(at, column)
		if p.flowEnds(at, column) || p.flowDepth > MaxDepth {
			to.End = at
			return at
		}
		switch p.text[at] {
		case closing:
			to.End = at + 1
			return at + 1
		case ']', '}': // closes an outer collection: this one is unclosed
			to.End = at
			return at
		case ',':
			at++
		default:
			at = p.flowEntry(to, at, column)
		}
	}
}

// skipFlow skips white space and comments on lines that belong to the brackets.
func (p *parser) skipFlow(at, column int) int {
	for at < len(p.text) {
		switch {
		case p.text[at] == '\n' && p.isOutdented(at+1, column):
			return at
		case isBlank(p.text[at]):
			at++
		case p.isComment(at):
			at = p.lineEnd(at)
		default:
			return at
		}
	}
	return at
}

// flowEnds reports whether the end of the text or the indentation of the next
// line ends the open brackets.
func (p *parser) flowEnds(at, column int) bool {
	return at >= len(p.text) || p.text[at] == '\n' && p.isOutdented(at+1, column)
}

// isOutdented reports whether a line is indented too little to belong to brackets
// after a key at column, and does not close them.
func (p *parser) isOutdented(at, column int) bool {
	end := p.lineEnd(at)
	line := p.text[at:end]
	content := strings.TrimLeft(line, " \t")
	return content != "" && len(line)-len(content) <= column && content[0] != ']' && content[0] != '}' && content[0] != '#'
}

// flowEntry reads one entry within brackets and returns the offset after it.
func (p *parser) flowEntry(to *Node, at, column int) int {
	first := &Node{Start: at, End: at}
	next := p.flowValue(first, at, column)
	if next == at {
		return at + 1 // no entry starts with this character
	}
	after := p.skipSpaces(next)
	isPair := after < len(p.text) && p.text[after] == ':' && first.Kind == Scalar
	if to.Kind == Sequence && !isPair {
		to.Items = append(to.Items, first)
		return next
	}
	pair := &Pair{Key: first.Text, Start: first.Start, End: first.End, Colon: isPair, Value: &Node{Start: next, End: next}}
	if isPair {
		next = p.skipFlow(after+1, column)
		pair.Value.Start, pair.Value.End = next, next
		if !p.flowEnds(next, column) && !strings.ContainsRune(",]}", rune(p.text[next])) {
			next = max(p.flowValue(pair.Value, next, column), next+1)
		}
	}
	if to.Kind == Mapping {
		to.Pairs = append(to.Pairs, pair)
		return next
	}
	to.Items = append(to.Items, &Node{Kind: Mapping, Flow: true, Start: pair.Start, End: next, Pairs: []*Pair{pair}})
	return next
}

// flowValue reads one value within brackets and returns the offset after it.
func (p *parser) flowValue(to *Node, at, column int) int {
	at = p.properties(to, at)
	if at >= len(p.text) {
		return at
	}
	switch p.text[at] {
	case '{', '[':
		return p.brackets(to, at, column)
	case '"', '\'':
		p.quoted(to, at)
		return to.End
	}
	end := at
	for end < len(p.text) && !strings.ContainsRune(",[]{}\n\r", rune(p.text[end])) && !p.isFlowColon(end) && !p.isComment(end) {
		end++
	}
	for end > at && isSpace(p.text[end-1]) {
		end--
	}
	if end > at {
		p.scalar(to, at, end, Plain)
	}
	return end
}

// isFlowColon reports whether a colon at the offset separates a key from its
// value within brackets.
func (p *parser) isFlowColon(at int) bool {
	return p.text[at] == ':' && (at+1 == len(p.text) || strings.ContainsRune(" \t\n\r,[]{}", rune(p.text[at+1])))
}
