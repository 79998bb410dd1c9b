package redistest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// query is a parsed query of dialect 2: what this server has of it.
//
//	query   = ( "*" | union ) [ "=>[KNN" size "@"field "$"param "AS" alias "]" ]
//	union   = all { "|" all }
//	all     = one { one }
//	one     = [ "-" ] ( "(" union ")" | "@"field ":" ( "{" term { "|" term } "}" | "(" union ")" ) | term )
//	          [ "=>{ $weight:" number "}" ]
type query struct {
	filter node
	knn    *knn
}

// knn is a search for the nearest vectors.
type knn struct {
	count               int
	field, param, alias string
}

// node is a condition with a score.
type node interface {
	match(c *corpus, d *document) (score float64, matches bool)
}

type (
	everything struct{}
	not        struct{ of node }
	all        struct{ of []node }
	union      struct{ of []node }
	term       struct{ field, word string }
	tagged     struct {
		field string
		of    []string
	}
	weighted struct {
		of     node
		weight float64
	}
)

func (everything) match(*corpus, *document) (float64, bool) { return 1, true }

func (n not) match(c *corpus, d *document) (float64, bool) {
	_, matches := n.of.match(c, d)
	return 0, !matches
}

func (n all) match(c *corpus, d *document) (total float64, matches bool) {
	for _, of := range n.of {
		score, matches := of.match(c, d)
		if !matches {
			return 0, false
		}
		total += score
	}
	return total, true
}

func (n union) match(c *corpus, d *document) (total float64, matches bool) {
	for _, of := range n.of {
		if score, m := of.match(c, d); m {
			total, matches = total+score, true
		}
	}
	return total, matches
}

func (n term) match(c *corpus, d *document) (float64, bool) { return c.bm25(d, n.field, n.word) }

func (n tagged) match(_ *corpus, d *document) (float64, bool) {
	for tag := range strings.SplitSeq(d.fields[n.field], ",") {
		if slices.Contains(n.of, strings.ToLower(strings.TrimSpace(tag))) {
			return 1, true
		}
	}
	return 0, false
}

func (n weighted) match(c *corpus, d *document) (float64, bool) {
	score, matches := n.of.match(c, d)
	return score * n.weight, matches
}

// isTermByte reports whether a character of ASCII is part of a word.
func isTermByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 128
}

// parser reads a query from left to right.
type parser struct {
	x     *schema
	text  string
	at    int
	field string // of terms; empty outside of a field
}

// parse reads a query for an index.
func parse(x *schema, text string) (*query, error) {
	p := &parser{x: x, text: text}
	q := &query{filter: everything{}}
	var err error
	if !p.take("*") {
		if q.filter, err = p.union(); err != nil {
			return nil, err
		}
	}
	if p.take("=>[") {
		if q.knn, err = p.knn(); err != nil {
			return nil, err
		}
	}
	if p.space(); p.at < len(text) {
		return nil, p.syntax()
	}
	return q, nil
}

func (p *parser) syntax() error {
	return fmt.Errorf("%w at offset %d near %.20q", errSyntax, p.at, p.text[min(p.at, len(p.text)):])
}

func (p *parser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// take skips a text if it is next.
func (p *parser) take(text string) bool {
	p.space()
	if !strings.HasPrefix(p.text[p.at:], text) {
		return false
	}
	p.at += len(text)
	return true
}

// word reads a term after an introduction, which may be empty.
func (p *parser) word(introduction string) (string, error) {
	if !p.take(introduction) {
		return "", p.syntax()
	}
	if introduction == "" {
		p.space()
	}
	start := p.at
	for p.at < len(p.text) && isTermByte(p.text[p.at]) {
		p.at++
	}
	if p.at == start {
		return "", p.syntax()
	}
	return p.text[start:p.at], nil
}

// knn reads the rest of a search for vectors.
func (p *parser) knn() (*knn, error) {
	k := &knn{}
	name, err := p.word("")
	if err != nil || !strings.EqualFold(name, "KNN") {
		return nil, fmt.Errorf("%w: Expecting Vector Similarity command", errSyntax)
	}
	count, err := p.word("")
	if err != nil {
		return nil, err
	}
	if k.count, err = strconv.Atoi(count); err != nil || k.count < 1 {
		return nil, p.syntax()
	}
	if k.field, err = p.word("@"); err != nil {
		return nil, err
	}
	if k.param, err = p.word("$"); err != nil {
		return nil, err
	}
	if as, err := p.word(""); err != nil || !strings.EqualFold(as, "AS") {
		return nil, p.syntax()
	}
	if k.alias, err = p.word(""); err != nil {
		return nil, err
	}
	if !p.take("]") {
		return nil, p.syntax()
	}
	return k, nil
}

func (p *parser) union() (node, error) {
	var u union
	for {
		n, err := p.all()
		if err != nil {
			return nil, err
		}
		if u.of = append(u.of, n); !p.take("|") {
			return u, nil
		}
	}
}

func (p *parser) all() (node, error) {
	var a all
	for {
		n, err := p.one()
		if err != nil {
			return nil, err
		}
		a.of = append(a.of, n)
		if p.space(); p.at == len(p.text) || strings.IndexByte("|)}=", p.text[p.at]) >= 0 {
			return a, nil
		}
	}
}

func (p *parser) one() (node, error) {
	if p.take("-") {
		n, err := p.one()
		return not{n}, err
	}
	n, err := p.primary()
	if err != nil || !p.take("=>{") {
		return n, err
	}
	if name, err := p.word("$"); err != nil || name != "weight" || !p.take(":") {
		return nil, p.syntax()
	}
	p.space()
	end := strings.IndexByte(p.text[p.at:], '}')
	if end < 0 {
		return nil, p.syntax()
	}
	weight, err := strconv.ParseFloat(strings.TrimSpace(p.text[p.at:p.at+end]), 64)
	if err != nil || weight < 0 {
		return nil, fmt.Errorf("%w: invalid value %q of weight", errSyntax, p.text[p.at:p.at+end])
	}
	p.at += end + 1
	return weighted{n, weight}, nil
}

func (p *parser) primary() (node, error) {
	if p.take("(") {
		return p.inside()
	}
	if p.space(); !strings.HasPrefix(p.text[p.at:], "@") {
		if p.field == "" {
			return nil, fmt.Errorf("%w at offset %d: this server for tests needs a field for words", errSyntax, p.at)
		}
		word, err := p.word("")
		return term{p.field, strings.ToLower(word)}, err
	}
	name, err := p.word("@")
	if err != nil || !p.take(":") {
		return nil, p.syntax()
	}
	f := p.x.field(name)
	switch {
	case f == nil:
		return nil, fmt.Errorf("ERR Unknown field at offset %d near %s", p.at, name)
	case f.kind == "TAG" && p.take("{"):
		return p.tags(name)
	case f.kind == "TEXT" && p.take("("):
		p.field = name
		n, err := p.inside()
		p.field = ""
		return n, err
	}
	return nil, p.syntax()
}

// inside reads what is in parentheses.
func (p *parser) inside() (node, error) {
	n, err := p.union()
	if err == nil && !p.take(")") {
		err = p.syntax()
	}
	return n, err
}

func (p *parser) tags(field string) (node, error) {
	t := tagged{field: field}
	for {
		word, err := p.word("")
		if err != nil {
			return nil, err
		}
		t.of = append(t.of, strings.ToLower(word))
		if p.take("}") {
			return t, nil
		}
		if !p.take("|") {
			return nil, p.syntax()
		}
	}
}
