package loader

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/tokenizer/tokenfile"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// decodeSpecial decodes the types of package spec that have a special syntax, and
// reports whether v is one of them.
func (d *decoder) decodeSpecial(n *node, v reflect.Value, at target) bool {
	switch to := v.Addr().Interface().(type) {
	case spec.Reference:
		d.decodeReference(n, to, at)
	case *spec.Secret:
		d.decodeSecret(n, to, at)
	case *spec.Type:
		d.decodeType(n, to, at)
	case *spec.Duration:
		d.decodeDuration(n, to, at)
	case *spec.Thinking:
		d.decodeThinking(n, to, at)
	case *spec.Expression:
		d.decodeExpression(n, to, at)
	case *spec.Assignments:
		d.decodeAssignments(n, to, at)
	case *spec.StoreRef:
		d.decodeStoreRef(n, to, at)
	case *spec.Bindings:
		d.decodeBindings(n, to, at)
	case *spec.Properties:
		d.decodeProperties(n, to, at)
	case *spec.PathRef:
		d.decodePathRef(n, to, at)
	case *spec.Tokenizer:
		d.decodeTokenizer(n, to, at)
	case *any:
		hideNamed(n)
		*to = d.decodeAny(n)
	case **spec.Approval:
		*to = d.decodeApproval(n, at)
	case **spec.StepItem:
		*to = d.decodeStepItem(n, at)
	default:
		return false
	}
	return true
}

// setReference sets what the document names in the place of a reference.
func setReference(to spec.Reference, n *node) {
	id, at := to.Text()
	*id, *at = n.text, n.span
}

// decodeReference decodes an id or {$ref: id}. A reference whose id contains an unset
// environment variable stays empty.
func (d *decoder) decodeReference(n *node, to spec.Reference, at target) {
	switch n.kind {
	case text:
		if !n.unset {
			setReference(to, n)
		}
	case mapping:
		d.decodeRefMapping(n, to, at)
	case integer, float, boolean:
		d.diags.add(d.wrongKind(n, at, "an id").WithHint("if it is an id, put it in quotes: %s", strconv.Quote(n.shown())))
	default:
		d.diags.add(d.wrongKind(n, at, "an id"))
	}
}

func (d *decoder) decodeRefMapping(n *node, to spec.Reference, at target) {
	ref := n.get("$ref")
	if ref == nil {
		hideNamed(n)
		n.markInvalid()
		hint := "declare it " + sectionOf(spec.TargetType(to)) + ", and write its id here"
		if id := n.get("id"); id != nil && id.kind == text {
			hint += ": " + id.shown()
		}
		d.diags.add(ruleInlineObject.At(n.head(), "%s takes a reference, not a definition", at).WithHint("%s", hint))
		return
	}
	for _, p := range n.pairs {
		if p.key.text != "$ref" {
			d.diags.add(ruleUnknownField.At(p.key.span, "a reference has no key %q", p.key.shown()).
				WithHint("it has only $ref").WithSeverity(diag.Warning))
		}
	}
	switch {
	case ref.kind == broken, ref.unset:
	case ref.kind == text:
		setReference(to, ref)
	default:
		d.diags.add(d.wrongKind(ref, target{name: "$ref"}, "an id"))
	}
}

// decodeType decodes text, int?, list[Order] or {element_type: text}. A text that is
// not a type expression becomes the name of an unknown type, so that it is reported
// once, with the known type names.
func (d *decoder) decodeType(n *node, to *spec.Type, at target) {
	switch n.kind {
	case text:
		if n.unset {
			return
		}
		t, misplaced := parseType(n.text)
		*to = t
		if misplaced {
			d.diags.add(misplacedMark(n, at, t))
		}
	case mapping:
		d.decodeListType(n, to, at)
	default:
		d.diags.add(d.wrongKind(n, at, "a type").WithHint("such as text, int? or list[text]"))
	}
}

// parseType parses a type expression. For one with a misplaced ? it returns the probable meaning.
func parseType(expression string) (t spec.Type, misplaced bool) {
	t, err := spec.ParseType(expression)
	var found *spec.TypeError
	if errors.As(err, &found) && found.Misplaced {
		misplaced = true
		t, err = spec.ParseType(strings.ReplaceAll(expression, "?", ""))
		t.Optional = true
	}
	if err != nil {
		return spec.Type{Name: expression}, false
	}
	return t, misplaced
}

func misplacedMark(n *node, at target, meant spec.Type) diag.Diagnostic {
	found := ruleOptionalMark.At(n.span, "%s: the type %q has a ? in the wrong place", at.owner, n.shown())
	if n.shown() != n.text {
		return found.WithHint("only one ? at the end is allowed")
	}
	return found.WithHint("only one ? at the end is allowed: %s", meant).WithSuggestion(meant.String())
}

// decodeListType decodes the structured form of a list, which QType accepts without documenting it.
func (d *decoder) decodeListType(n *node, to *spec.Type, at target) {
	elem := n.get("element_type")
	if elem == nil {
		d.diags.add(d.wrongKind(n, at, "a type").WithHint("such as text, int? or list[text]"))
		return
	}
	for _, p := range n.pairs {
		if p.key.text != "element_type" {
			d.diags.add(unknownField(p.key, "a list type", []string{"element_type"}, true))
		}
	}
	var inner spec.Type
	before := d.diags.raised
	d.decode(elem, reflect.ValueOf(&inner).Elem(), target{owner: at.owner, name: "element_type"})
	if d.diags.raised == before && inner.String() != "" {
		*to = spec.Type{Elem: &inner}
	}
}

// decodeDuration decodes 500ms, 30s or 2m.
func (d *decoder) decodeDuration(n *node, to *spec.Duration, at target) {
	if n.unset {
		return
	}
	if n.kind == text {
		length, err := time.ParseDuration(strings.TrimSpace(n.text))
		if err == nil {
			*to = spec.Duration(length)
			return
		}
	}
	d.diags.add(explainDuration(d.wrongKind(n, at, "a length of time").WithHint("such as 500ms, 30s or 2m"), n))
}

// decodeThinking decodes a word or a number of tokens. Some parsers of YAML read off as false.
func (d *decoder) decodeThinking(n *node, to *spec.Thinking, at target) {
	if n.unset {
		return
	}
	given := spec.Thinking(strings.TrimSpace(n.text))
	switch n.kind {
	case integer:
		if tokens, ok := n.toInt(); ok {
			given = spec.Thinking(strconv.FormatInt(tokens, 10))
		}
	case boolean:
		if yes, ok := n.toBool(); ok && !yes {
			given = spec.ThinkingOff
		}
	}
	if given.Valid() {
		*to = given
		return
	}
	words := make([]string, len(spec.ThinkingWords()))
	for i, word := range spec.ThinkingWords() {
		words[i] = string(word)
	}
	found := d.wrongKind(n, at, "off, low, medium, high, max or a number of tokens")
	if near := diag.Nearest(n.text, words); n.kind == text && near != "" {
		found.Hint, found.Suggestion = fmt.Sprintf("did you mean %q?", near), near
	}
	d.diags.add(found)
}

// decodeBindings decodes a mapping from names to variables. The references keep their
// addresses, because a step's derived inputs and outputs point to them.
func (d *decoder) decodeBindings(n *node, to *spec.Bindings, at target) {
	if !d.isMapping(n, at, "a mapping from names to variables") {
		return
	}
	list := make(spec.Bindings, len(n.pairs))
	for i, p := range n.pairs {
		list[i].Name = p.key.text
		here := at.entry(p.key)
		switch p.value.kind {
		case broken:
			d.gaps.add(d, reflect.TypeFor[spec.Ref[*spec.Variable]]())
		case text, mapping:
			d.decodeReference(p.value, &list[i].Var, here)
			if p.value.unset {
				p.value.markInvalid()
			}
		default:
			d.diags.add(d.wrongKind(p.value, here, "the id of a variable").WithHint("a constant cannot be bound"))
		}
	}
	*to = list
}

// decodeProperties decodes the fields of a custom type, in document order.
func (d *decoder) decodeProperties(n *node, to *spec.Properties, at target) {
	if !d.isMapping(n, at, "a mapping from names to types") {
		return
	}
	list := make(spec.Properties, 0, len(n.pairs))
	for _, p := range n.pairs {
		name := p.key.text
		if name == "" || strings.HasPrefix(name, "_") {
			hint := "a name must not start with _"
			if name == "" {
				hint = "a name must not be empty"
			}
			d.diags.add(ruleProperty.At(p.key.span, "%s: a property cannot be named %q", at.owner, p.key.shown()).WithHint("%s", hint))
			continue
		}
		property := spec.Property{Name: name}
		here := at.entry(p.key)
		if p.value.kind == mapping || p.value.kind == null {
			d.diags.add(d.wrongKind(p.value, here, "a type").WithHint("such as text, int? or list[text]"))
		} else {
			d.decode(p.value, reflect.ValueOf(&property.Type).Elem(), here)
		}
		list = append(list, property)
	}
	*to = list
}

// decodePathRef decodes the id of a variable, {$ref: id} or {uri: path}.
func (d *decoder) decodePathRef(n *node, to *spec.PathRef, at target) {
	if n.kind != mapping || n.has("$ref") || n.has("id") {
		d.decodeReference(n, &to.Var, at)
		return
	}
	isMisspelled, isConstant := false, false
	for _, p := range n.pairs {
		if p.key.text != "uri" {
			found := unknownField(p.key, "a path", []string{"$ref", "uri"}, false)
			isMisspelled, isConstant = isMisspelled || found.Suggestion != "", isConstant || found.Suggestion == "uri"
			d.diags.add(found)
		}
	}
	uri := n.get("uri")
	switch {
	case uri == nil && isMisspelled:
		if !isConstant { // it may name a variable
			n.markInvalid()
		}
	case uri == nil:
		d.diags.add(missingField(n, "a path", "uri"))
	case uri.kind != broken:
		d.decodeText(uri, target{owner: at.owner, name: at.name + ".uri"}, func(s string) { to.URI = s })
	}
}

// decodeApproval decodes the id of a tool, {$ref: id} or {tool: id, by: [role:NAME]}.
func (d *decoder) decodeApproval(n *node, at target) *spec.Approval {
	a := new(spec.Approval)
	if n.kind == mapping && !n.has("$ref") && !n.has("id") {
		d.decodeStruct(n, reflect.ValueOf(a).Elem(), at.title())
		return a
	}
	d.decodeReference(n, &a.Tool, at)
	if spec.IsEmpty(&a.Tool) {
		return nil
	}
	a.SetPosition(n.place())
	return a
}

// decodeStepItem decodes a step or {$ref: id}; it returns nil if neither is possible.
func (d *decoder) decodeStepItem(n *node, at target) *spec.StepItem {
	item := new(spec.StepItem)
	switch {
	case n.kind == text:
		n.markInvalid()
		if !n.unset {
			d.diags.add(ruleBareStep.At(n.span, "a step cannot be only an id").
				WithHint("to reuse the step write {$ref: %s}", n.shown()).WithSuggestion("{$ref: " + n.shown() + "}"))
		}
		return nil
	case n.has("$ref"):
		d.decodeRefMapping(n, &item.Ref, at)
		if spec.IsEmpty(&item.Ref) {
			return nil
		}
		return item
	}
	d.decode(n, reflect.ValueOf(&item.Step).Elem(), at)
	if item.Step == nil {
		return nil
	}
	return item
}

// maxTokenizer limits the size of a tokenizer that Options.Open returns.
const maxTokenizer = 64 << 20

// decodeTokenizer decodes the name of an encoding or the path of a tokenizer's file,
// which it reads, so that an error is reported before the document runs.
func (d *decoder) decodeTokenizer(n *node, to *spec.Tokenizer, at target) {
	switch {
	case n.kind != text:
		d.diags.add(d.wrongKind(n, at, "the name of an encoding or the path of a file"))
	case n.unset:
	case slices.Contains(spec.Encodings(), n.text):
		to.Encoding = n.text
	case !tokenfile.IsPath(n.text):
		found := ruleChoice.At(n.span, "%s cannot be %q", at, n.shown())
		if found = found.WithNearest(n.text, spec.Encodings()); found.Suggestion == "" {
			found = found.WithHint("%s, or the path of a tokenizer.json or a SentencePiece .model file", oneOf(spec.Encodings()))
		}
		d.diags.add(found)
	default:
		path, problem := d.tokenizerFile(n)
		if problem != "" {
			n.markInvalid()
			d.diags.add(ruleTokenizer.At(n.span, "cannot count tokens with %q: %s", remotefs.Redacted(n.shown()), problem))
			return
		}
		to.File = path
	}
}

// tokenizerFile returns the path of the file that a key names, or why it cannot be
// used. It may read the files that an include may, except remote ones.
func (d *decoder) tokenizerFile(n *node) (path, problem string) {
	b := d.builders[n.span.File]
	if b == nil || b.noIncludes {
		return "", "this document may not read files"
	}
	path = resolve(b.path, n.text)
	if _, remote := remotefs.Remote(path); remote {
		return "", "a tokenizer must be a local file"
	}
	in, err := b.open(path, b.baseAddress())
	if err != nil {
		return "", "the file " + asReadError(err).text
	}
	defer in.Close()
	if b.opts.Open != nil {
		_, err = parseTokenizer(in)
	} else {
		_, err = tokenfile.Load(path)
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause // without the path
	}
	if err != nil {
		return "", err.Error()
	}
	return path, ""
}

// parseTokenizer reads a tokenizer that is not in a file of the operating system.
func parseTokenizer(in io.Reader) (*tokenfile.Tokenizer, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxTokenizer))
	if err != nil {
		return nil, err
	}
	return tokenfile.Parse(data)
}

// decodeExpression decodes an expression. A number or a boolean is one as well.
func (d *decoder) decodeExpression(n *node, to *spec.Expression, at target) {
	switch n.kind {
	case text, integer, float, boolean:
		switch {
		case n.unset:
		case strings.TrimSpace(n.text) == "":
			d.diags.add(ruleKind.At(n.span, "%s is empty", at).WithHint("give it an expression, such as count > 3"))
		case n.kind == boolean: // also yes and on
			yes, _ := n.toBool()
			to.Text, to.Span = strconv.FormatBool(yes), n.span
		default:
			to.Text, to.Span = n.text, n.span
		}
	default:
		d.diags.add(d.wrongKind(n, at, "an expression").WithHint("such as count > 3"))
	}
}

// decodeAssignments decodes a mapping from variables to expressions. The references
// keep their addresses, because a step's derived outputs point to them.
func (d *decoder) decodeAssignments(n *node, to *spec.Assignments, at target) {
	if !d.isMapping(n, at, "a mapping from variables to expressions") {
		return
	}
	list := make(spec.Assignments, len(n.pairs))
	for i, p := range n.pairs {
		if !p.key.unset {
			list[i].Var.ID, list[i].Var.Span = p.key.text, p.key.span
		}
		here := at.entry(p.key)
		if p.value.kind == broken {
			d.gaps.add(d, reflect.TypeFor[spec.Expression]())
		} else {
			d.decodeExpression(p.value, &list[i].Expr, here)
		}
	}
	*to = list
}

// decodeStoreRef decodes the id of a store, {$ref: id}, or the URL of one.
func (d *decoder) decodeStoreRef(n *node, to *spec.StoreRef, at target) {
	short := strings.HasPrefix(n.text, "sqlite:") || n.text == "memory:"
	if n.kind == text && (short || strings.Contains(n.text, "://")) {
		at.isAddress = true
		d.decodeSecret(n, &to.URL, at)
		return
	}
	d.decodeReference(n, &to.Store, at)
}
