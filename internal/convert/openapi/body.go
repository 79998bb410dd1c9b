package openapi

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec"
)

// Media types of bodies.
const (
	jsonType      = "application/json"
	formType      = "application/x-www-form-urlencoded"
	multipartType = "multipart/form-data"
)

// isJSON reports whether a media type is JSON, or any type.
func isJSON(media string) bool { return strings.Contains(media, "json") || media == "*/*" }

// preferred returns the index of the media type to use: JSON before forms, and those
// before others.
func preferred(media []string) int {
	for _, wanted := range []func(string) bool{
		func(m string) bool { return m == jsonType },
		func(m string) bool { return strings.HasSuffix(m, "merge-patch+json") },
		isJSON,
		func(m string) bool { return m == formType },
		func(m string) bool { return m == multipartType },
	} {
		if i := slices.IndexFunc(media, func(m string) bool { return wanted(bare(m)) }); i >= 0 {
			return i
		}
	}
	return 0
}

// bare returns a media type without parameters.
func bare(media string) string {
	media, _, _ = strings.Cut(media, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// body reads what is sent as the body.
func (b *toolBuilder) body() {
	if b.isSwagger2() {
		b.swaggerBody()
		return
	}
	body := b.resolve(b.node.Get("requestBody"))
	content := pairs(body.Get("content"))
	if len(content) == 0 {
		return
	}
	media := make([]string, len(content))
	for i, p := range content {
		media[i] = p.Key
	}
	used := content[preferred(media)]
	for _, p := range pairs(used.Value.Get("encoding")) {
		if p.Value.Get("style").Scalar() == "deepObject" {
			b.lists, b.records = "indices", "brackets"
		}
	}
	b.send(used.Key, body, used.Value.Get("schema"), isTrue(body.Get("required")))
}

// swaggerBody reads the body of a Swagger 2 operation.
func (b *toolBuilder) swaggerBody() {
	consumes := b.node.Get("consumes")
	if consumes == nil {
		consumes = b.root.Get("consumes")
	}
	var media []string
	for _, n := range items(consumes) {
		media = append(media, n.Text)
	}
	var form []field
	for _, p := range slices.Concat(items(b.node.Get("parameters")), items(b.item.Get("parameters"))) {
		p = b.resolve(p)
		switch p.Get("in").Scalar() {
		case "body":
			used := jsonType
			if len(media) > 0 {
				used = media[preferred(media)]
			}
			b.send(used, p, p.Get("schema"), isTrue(p.Get("required")))
			return
		case "formData":
			form = append(form, field{p.Get("name").Scalar(), p, isTrue(p.Get("required"))})
		}
	}
	switch {
	case len(form) == 0:
	case slices.ContainsFunc(form, func(f field) bool { return isFile(f.schema) }) || slices.Contains(media, multipartType):
		b.form(spec.BodyMultipart, form)
	default:
		b.form(spec.BodyForm, form)
	}
}

// send adds the inputs for a body of a media type.
func (b *toolBuilder) send(media string, at, schema *input.Node, required bool) {
	kind := bare(media)
	switch {
	case len(b.formFields(schema)) == 0 && (kind == formType || kind == multipartType):
		return
	case b.method == "get" || b.method == "head" || b.method == "options":
		b.note(input.Unsupported, at, "Tool %s: the body of a %s request is not sent.", b.id, strings.ToUpper(b.method))
		return
	case kind == formType:
		b.form(spec.BodyForm, b.formFields(schema))
		return
	case kind == multipartType:
		b.form(spec.BodyMultipart, b.formFields(schema))
		return
	case !isJSON(kind):
		of := document.Type{Kind: document.Text}
		if isBinary(kind) || isFile(b.resolve(schema)) {
			of.Kind = document.Bytes
		}
		b.whole(b.declare("request", &of, nil, required))
		b.settings.Set("body_format", spec.BodyRaw)
	default:
		fields := b.sent(schema)
		if len(fields) > 0 && b.method != "delete" {
			for _, f := range fields {
				b.inputs = append(b.inputs, b.argument(f.name, f.schema, f.required))
			}
			break
		}
		b.whole(b.declare("request", b.typeOf(schema, b.id+" request"), schema, required))
	}
	if kind != jsonType && !strings.Contains(kind, "*") {
		b.headers.Set("Content-Type", media)
	}
}

// whole adds an input that is the whole body. It is not part of an object, so it needs no name.
func (b *toolBuilder) whole(v *document.Block) {
	id := v.Entries[0].Value
	b.renamed = slices.DeleteFunc(b.renamed, func(e document.Entry) bool { return e.Key == id })
	b.inputs = append(b.inputs, v)
	b.settings.Set("body", id)
}

// sent returns the fields of an object that clients send.
func (b *toolBuilder) sent(schema *input.Node) []field {
	return slices.DeleteFunc(b.fields(schema), func(f field) bool { return f.name == "" || isTrue(f.schema.Get("readOnly")) })
}

// formFields returns the fields of a form: those of the object, and those of all its
// alternatives as optional ones.
func (b *toolBuilder) formFields(schema *input.Node) []field {
	all := b.sent(schema)
	for _, f := range b.alternatives(schema, map[*input.Node]bool{}) {
		if !slices.ContainsFunc(all, func(o field) bool { return o.name == f.name }) {
			all = append(all, f)
		}
	}
	return all
}

// alternatives returns the fields of nested choices, as optional ones. Each choice is read once.
func (b *toolBuilder) alternatives(schema *input.Node, seen map[*input.Node]bool) []field {
	var all []field
	schema = b.resolve(schema)
	if schema == nil || seen[schema] {
		return nil
	}
	seen[schema] = true
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		for _, part := range items(schema.Get(key)) {
			all = addOptional(all, b.sent(part))
			if len(b.fields(part)) == 0 {
				all = addOptional(all, b.alternatives(part, seen))
			}
		}
	}
	return all
}

// form adds the inputs of a form.
func (b *toolBuilder) form(format string, fields []field) {
	for _, f := range fields {
		of := b.typeOf(f.schema, b.id+" "+f.name)
		node := b.resolve(f.schema)
		switch {
		case format == spec.BodyMultipart && isFile(node):
			of = &document.Type{Kind: document.Bytes}
		case format == spec.BodyMultipart && isFile(b.resolve(node.Get("items"))):
			of = &document.Type{Kind: document.List, Elem: &document.Type{Kind: document.Bytes}}
		}
		b.inputs = append(b.inputs, b.declare(f.name, of, f.schema, f.required))
	}
	b.settings.Set("body_format", format)
}

// isFile reports whether a schema describes the content of a file.
func isFile(schema *input.Node) bool {
	switch {
	case schema.Get("format").Scalar() == "binary", schema.Get("type").Scalar() == "file":
		return true
	}
	return schema.Get("contentMediaType") != nil && schema.Get("contentEncoding") == nil
}

// isBinary reports whether a media type is not text.
func isBinary(media string) bool {
	for _, text := range []string{"text/", "xml", "yaml", "html", "csv", "javascript"} {
		if strings.Contains(media, text) {
			return false
		}
	}
	return true
}

// outputs returns the outputs: those of the first successful response that has content.
func (b *toolBuilder) outputs() []*document.Block {
	media, schema := b.response()
	if schema == nil && media == "" {
		return nil
	}
	if media != "" && !isJSON(media) {
		of := document.Type{Kind: document.Text}
		if isBinary(media) || isFile(b.resolve(schema)) {
			of.Kind = document.Bytes
		}
		return []*document.Block{variable(b.id+"_response", &of, true)}
	}
	fields := b.fields(schema)
	if len(fields) == 0 {
		of := b.typeOf(schema, b.id+" response")
		return []*document.Block{variable(b.id+"_response", of, true)}
	}
	var vars []*document.Block
	for _, f := range fields {
		switch {
		case isTrue(f.schema.Get("writeOnly")):
		case document.Slug(f.name) != f.name:
			b.note(input.Ignored, f.schema, "Tool %s: the field %q of the response is not an output, as it cannot be an id.", b.id, f.name)
		default:
			vars = append(vars, variable(f.name, b.typeOf(f.schema, b.id+" "+f.name), f.required))
		}
	}
	return vars
}

// response returns the media type and the schema of the response; both are empty for a
// response without content.
func (b *toolBuilder) response() (media string, schema *input.Node) {
	var all []*input.Node
	for _, r := range pairs(b.node.Get("responses")) {
		if strings.HasPrefix(r.Key, "2") {
			all = append(all, r.Value)
		}
	}
	if len(all) == 0 {
		all = append(all, b.node.Get("responses").Get("default"))
	}
	for _, r := range all {
		r = b.resolve(r)
		content := pairs(r.Get("content"))
		if schema := r.Get("schema"); schema != nil { // Swagger 2
			return b.swaggerMedia(schema), schema
		}
		if len(content) == 0 {
			continue
		}
		media := make([]string, len(content))
		for i, p := range content {
			media[i] = p.Key
		}
		used := content[preferred(media)]
		return bare(used.Key), used.Value.Get("schema")
	}
	return "", nil
}

// swaggerMedia returns the media type of a Swagger 2 response; empty where JSON is possible.
func (b *toolBuilder) swaggerMedia(schema *input.Node) string {
	if isFile(schema) {
		return "application/octet-stream"
	}
	produces := b.node.Get("produces")
	if produces == nil {
		produces = b.root.Get("produces")
	}
	for _, n := range items(produces) {
		if isJSON(bare(n.Text)) {
			return ""
		}
	}
	if len(items(produces)) > 0 && schema.Get("type").Scalar() == "string" {
		return bare(produces.Items[0].Text)
	}
	return ""
}
