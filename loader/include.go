package loader

import (
	"bytes"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// include replaces an include tag by the content of the file. The path is used as
// written: environment variables and ~ are not expanded.
func (b *builder) include(n *yaml.Node, start, end, depth int) *node {
	span := b.span(start, end)
	target := n.Value
	if target == "" {
		return b.badInclude(start)
	}
	b.includes++
	if b.includes > b.opts.Limits.Includes {
		if b.includes == b.opts.Limits.Includes+1 {
			b.diags.add(ruleLimit.At(span, "the document includes more than %d files", b.opts.Limits.Includes))
		}
		return b.broken(start, end)
	}
	if remotefs.Redacted(target) != target {
		b.file.MarkSecret(span) // it contains a password or a signature
	}
	path := resolve(b.path, target)
	if n.Tag == "!include" {
		if chain, found := b.findCycle(path); found {
			b.diags.add(ruleIncludeCycle.At(span, "files include each other in a cycle: %s", chain))
			return b.broken(start, end)
		}
	}
	target = remotefs.Redacted(target)
	if b.noIncludes {
		b.diags.add(ruleInclude.At(span, "cannot include %q: this document may not read files", target))
		return b.broken(start, end)
	}
	content, problem := b.read(path, b.baseAddress())
	if problem != nil {
		rule := ruleInclude
		if problem.rule != nil {
			rule = *problem.rule
		}
		b.diags.add(rule.At(span, "cannot include %q: the file %s", target, problem.text))
		return b.broken(start, end)
	}
	file := &source.File{Path: b.name(path), Text: content, From: span}
	b.files = append(b.files, file)
	if n.Tag == "!include_raw" {
		b.file.MarkText(file)
		return &node{kind: text, raw: true, text: string(content), source: string(content), size: 1, height: 1, span: span}
	}
	child := &builder{loadState: b.loadState, file: file, path: path, parent: b, depth: depth}
	return child.buildRoot()
}

// quotedInclude matches a text that is an include tag and one path.
var quotedInclude = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^!include(_raw)?[ \t]+[^ \t\n]+$`) })

// includeInQuotes reports such a text.
func (b *builder) includeInQuotes(n *yaml.Node, start, end int) *node {
	span := b.span(start, end)
	found := ruleInclude.At(span, "in quotes, this tag is only a text").WithHint("remove the quotes")
	if remotefs.Redacted(n.Value) == n.Value {
		found = found.WithFix(n.Value)
	} else {
		b.file.MarkSecret(span)
	}
	b.diags.add(found)
	return b.broken(start, end)
}

// baseAddress is the address of the outermost remote file that includes the builder's
// file: it may include only addresses below it. It is empty for a local file.
func (b *builder) baseAddress() string {
	base := ""
	for at := b; at != nil; at = at.parent {
		if _, remote := remotefs.Remote(at.path); !remote {
			break
		}
		base = remotefs.Base(at.path)
	}
	return base
}

// buildRoot builds the tree of the builder's file; an empty file is null.
func (b *builder) buildRoot() *node {
	b.pos = newPositions(b.file.Text)
	if b.builders != nil {
		b.builders[b.file] = b
	}
	b.anchors = map[*yaml.Node]*node{}
	nothing := pointAt(b.file, source.Pos{Line: 1, Column: 1})
	var tree *yaml.Node
	found := b.checkMarks(nothing)
	if len(found) == 0 {
		tree, found = parse(b.file, b.pos)
	}
	b.diags.add(found...)
	if len(found) > 0 {
		hideInText(b.file)
	}
	switch {
	case tree != nil && !(len(found) > 0 && isEmpty(tree)):
		made, _ := b.build(tree, b.depth+1)
		return made
	case len(found) > 0: // the error explains why it is empty
		return &node{kind: broken, size: 1, height: 1, span: nothing}
	}
	return &node{kind: null, size: 1, height: 1, span: nothing}
}

// bytesOfMark is how many bytes of the limit of a file there are for each of its marks.
const bytesOfMark = 10

// checkMarks limits the characters that begin or end values: the parser needs several hundred
// bytes of memory for each, so a few megabytes of brackets could fill the memory of a
// computer.
func (b *builder) checkMarks(at source.Span) diag.List {
	marks, most := 0, b.opts.Limits.FileBytes/bytesOfMark
	for _, mark := range []byte("\n,[]{}") {
		marks += bytes.Count(b.file.Text, []byte{mark})
	}
	if marks <= most {
		return nil
	}
	return diag.List{ruleLimit.At(at, "the file has more than %s lines, commas and brackets", textfmt.Thousands(most))}
}

// findCycle reports whether path is a file that is being read, and the includes that lead to it.
func (b *builder) findCycle(path string) (chain string, found bool) {
	id := identity(path)
	names := []string{b.name(path)}
	for at := b; at != nil; at = at.parent {
		names = append(names, at.file.Path)
		if identity(at.path) == id {
			for i, j := 0, len(names)-1; i < j; i, j = i+1, j-1 {
				names[i], names[j] = names[j], names[i]
			}
			return strings.Join(names, " → "), true
		}
	}
	return "", false
}

// badInclude reports an include tag that has no path.
func (b *builder) badInclude(start int) *node {
	b.diags.add(ruleSyntax.At(pointAt(b.file, b.pos.at(start)), "!include and !include_raw take the path of a file"))
	return b.broken(start, start)
}
