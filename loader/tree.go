package loader

import (
	"encoding/base64"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// loadState is the state that the trees of a document share.
type loadState struct {
	*reader
	language *spec.Language
	lookup   func(string) (string, bool)
	user     func(string) (string, bool)
	redactor *redact.Redactor // gets the secrets of the document; nil for none
	diags    *diagnostics
	aliased  int  // values that aliases added so far
	tooDeep  bool // values that are nested too deeply were reported
	verbatim bool // ${NAME} is not expanded

	builders map[*source.File]*builder // those of the files; nil if no values are decoded
}

// builder builds the tree of one file.
type builder struct {
	*loadState
	file    *source.File
	path    string // the path of the file; its name in diagnostics may be shorter
	parent  *builder
	pos     *positions
	anchors map[*yaml.Node]*node // finished ones; nil while the node is being built
	depth   int                  // levels above the file's root, through includes
}

// build builds the tree of n. end is the offset after the text of n, which for an alias
// or an include is not the end of its value.
func (b *builder) build(n *yaml.Node, depth int) (made *node, end int) {
	if n.Kind == yaml.AliasNode {
		return b.alias(n, depth)
	}
	if n.Anchor != "" {
		b.anchors[n] = nil
		defer func() { b.anchors[n] = made }()
	}
	start := b.pos.start(n)
	if depth > b.opts.Limits.Depth {
		if !b.tooDeep { // one position is enough
			b.diags.add(ruleLimit.At(pointAt(b.file, b.pos.at(start)), "values are nested more than %d levels deep", b.opts.Limits.Depth))
		}
		b.tooDeep = true
		return b.broken(start, start), start
	}
	if tag, ok := b.tag(n); !ok {
		return b.unknownTag(n, tag)
	}
	switch n.Kind {
	case yaml.MappingNode:
		return b.mapping(n, start, depth)
	case yaml.SequenceNode:
		return b.sequence(n, start, depth)
	}
	end = b.pos.scalarEnd(n, start)
	if n.Tag == "!include" || n.Tag == "!include_raw" {
		return b.include(n, start, end, depth), end
	}
	return b.scalar(n, start, end), end
}

// span returns the span between two offsets.
func (b *builder) span(start, end int) source.Span {
	return source.Span{File: b.file, Start: b.pos.at(start), End: b.pos.at(end)}
}

func (b *builder) broken(start, end int) *node {
	return &node{kind: broken, span: b.span(start, end), size: 1, height: 1}
}

// alias returns the target of an alias, within the limits: a short text with aliases of
// aliases can expand to more values than fit in memory.
func (b *builder) alias(n *yaml.Node, depth int) (*node, int) {
	start := b.pos.offset(n.Line, n.Column)
	end := start + len("*") + len(n.Value)
	target, seen := b.anchors[n.Alias]
	switch {
	case !seen || target == nil:
		b.diags.add(ruleSyntax.At(b.span(start, end), "the alias *%s is inside its anchor", n.Value))
		return b.broken(start, end), end
	case depth+target.height > b.opts.Limits.Depth:
		b.diags.add(ruleLimit.At(b.span(start, end), "with the alias *%s values are nested more than %d levels deep", n.Value, b.opts.Limits.Depth))
		return b.broken(start, end), end
	}
	before := b.aliased
	b.aliased += target.size
	if b.aliased > b.opts.Limits.AliasNodes {
		if before <= b.opts.Limits.AliasNodes {
			b.diags.add(ruleLimit.At(b.span(start, end), "with the alias *%s aliases add more than %d values", n.Value, b.opts.Limits.AliasNodes))
		}
		return b.broken(start, end), end
	}
	if !target.shared && target.span.File != nil {
		target.shared = true
		target.span.File.MarkAliased(target.span)
	}
	return target, end
}

// tag returns the explicit tag of a node, and whether it is known.
func (b *builder) tag(n *yaml.Node) (tag string, known bool) {
	if n.Style&yaml.TaggedStyle == 0 {
		return "", true
	}
	switch n.Tag {
	case "!include", "!include_raw":
		return n.Tag, true
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!binary", "!!timestamp", "!!merge":
		return n.Tag, n.Kind == yaml.ScalarNode
	case "!!seq", "!!omap", "!!pairs":
		return n.Tag, n.Kind == yaml.SequenceNode
	case "!!map", "!!set":
		return n.Tag, n.Kind == yaml.MappingNode
	}
	return n.Tag, false
}

// unknownTag reports a tag. The value is not checked, because its meaning is not known.
func (b *builder) unknownTag(n *yaml.Node, tag string) (*node, int) {
	start := b.pos.offset(n.Line, n.Column)
	for start < len(b.file.Text) && b.file.Text[start] == '&' { // an anchor may precede the tag
		for start < len(b.file.Text) && !isBlank(b.file.Text[start]) {
			start++
		}
		start = b.pos.skipBlank(start)
	}
	end := start
	for end < len(b.file.Text) && !isBlank(b.file.Text[end]) && b.file.Text[end] != ',' {
		end++
	}
	found := ruleTag.At(b.span(start, end), "unknown tag %s", tag)
	switch found = found.WithNearest(tag, []string{"!include", "!include_raw"}); {
	case found.Suggestion != "":
	case !strings.HasPrefix(tag, "!!"):
		found = found.WithHint("a text that starts with ! needs quotes")
	}
	b.diags.add(found)
	return b.broken(start, end), end
}

// sequence builds a list.
func (b *builder) sequence(n *yaml.Node, start, depth int) (*node, int) {
	at := source.Span{File: b.file, Start: b.pos.at(start)}
	made := &node{kind: sequence, size: 1, items: make([]*node, 0, len(n.Content))}
	if n.Tag == "!include" || n.Tag == "!include_raw" {
		return b.badInclude(start), start
	}
	end := start + 1
	for _, c := range n.Content {
		var item *node
		item, end = b.build(c, depth+1)
		made.items = append(made.items, item)
		made.grow(item)
	}
	if n.Style&yaml.FlowStyle != 0 {
		end = b.pos.close(max(end, start+1), ']')
	}
	made.height++
	at.End = b.pos.at(end)
	made.span = at
	return made, end
}

// scalar builds a scalar.
func (b *builder) scalar(n *yaml.Node, start, end int) *node {
	made := &node{text: n.Value, source: n.Value, size: 1, height: 1, span: b.span(start, end)}
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	switch {
	case n.Style&yaml.TaggedStyle != 0:
		made.tag = n.Tag
		made.kind = b.tagged(n, made)
	case n.Style&quoted != 0 || n.Tag == "!":
		made.kind = text
	default:
		made.kind, made.bare = resolve11(n.Value), true
		made.date = made.kind == text && isDate(n.Value)
		if made.kind == null && n.Value == "" && n.Anchor != "" {
			made.hidden = "& starts an anchor"
			at := b.pos.offset(n.Line, n.Column)
			made.span = b.span(at, at+len("&")+len(n.Anchor))
		}
	}
	if n.Style&quoted != 0 && quotedInclude().MatchString(n.Value) {
		return b.includeInQuotes(n, start, end)
	}
	if made.kind == text && !b.verbatim {
		b.expand(made, start, end)
	}
	return made
}

// tagged returns the kind that an explicit tag requires.
func (b *builder) tagged(n *yaml.Node, made *node) kind {
	want := text
	switch n.Tag {
	case "!!null":
		return null
	case "!!int":
		want = integer
	case "!!float":
		want = float
	case "!!bool":
		want = boolean
	case "!!timestamp":
		made.date = isDate(n.Value)
	case "!!binary":
		data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		if err != nil {
			b.diags.add(ruleSyntax.At(made.span, "the tag !!binary requires base64"))
			return broken
		}
		made.text = string(data)
	}
	if is := resolve11(n.Value); want != text && is != want && !(want == float && is == integer) {
		b.diags.add(ruleSyntax.At(made.span, "this is %s, but the tag %s requires %s", is.noun(), n.Tag, want.noun()))
		return broken
	}
	return want
}

// allowedVariable returns an environment variable that the document may have.
func (b *builder) allowedVariable(name string) (string, bool) {
	if b.opts.Policy.Env(name) != nil {
		return "", false
	}
	return b.lookup(name)
}

// expand expands environment variables in a text and reports those that are not set or have another form.
func (b *builder) expand(made *node, start, end int) {
	if b.reportForms(made, start, end) {
		made.unset = true
		return
	}
	expanded, unset := expand(made.text, b.allowedVariable)
	made.text, made.unset = expanded, len(unset) > 0
	at := start
	for _, name := range unset {
		span := made.span
		written := "${" + name + "}"
		if i := strings.Index(string(b.file.Text[at:end]), written); i >= 0 {
			span = source.Span{File: b.file, Start: b.pos.at(at + i), End: b.pos.at(at + i + len(written))}
			at += i + len(written)
		}
		found := ruleUnset.At(span, "the environment variable %s is not set", name).WithHint("%s", unsetHint(name))
		if err := b.opts.Policy.Env(name); err != nil {
			found = ruleUnset.At(span, "%s", err)
		}
		if b.opts.Strict {
			found = found.WithSeverity(diag.Error)
		}
		b.diags.add(found)
	}
}
