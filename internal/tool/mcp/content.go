package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// read returns the value of a result: its structured content, else its text, which is
// parsed if it is a JSON object or list, or the bytes of a single image or file. Texts and
// files are a list, in their order. Texts next to structured content that say more than it
// are its field content, as files are.
func read(result *sdk.CallToolResult) (any, error) {
	files := filesOf(result.Content)
	if result.StructuredContent != nil {
		raw, err := json.Marshal(result.StructuredContent)
		if err != nil {
			return nil, fmt.Errorf("invalid result: %w", err)
		}
		v, err := value.Parse(string(raw))
		if err != nil {
			return nil, err
		}
		v, placed := withFiles(v, files)
		return withContent(v, others(result, placed)), nil
	}
	switch {
	case len(files) == 1 && len(result.Content) == 1:
		return files[0], nil
	case len(files) > 0:
		return mixed(result.Content), nil
	}
	text := texts(result.Content)
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		if v, err := value.Parse(trimmed); err == nil {
			return v, nil
		}
	}
	return text, nil
}

// fileOf returns the bytes of an image, a sound or an embedded file; nil for other contents.
func fileOf(content sdk.Content) []byte {
	switch c := content.(type) {
	case *sdk.ImageContent:
		return c.Data
	case *sdk.AudioContent:
		return c.Data
	case *sdk.EmbeddedResource:
		if c.Resource != nil {
			return c.Resource.Blob
		}
	}
	return nil
}

// texts joins the text of the contents, one per line. An embedded text is its text, a link
// to a resource its address with the name and the description.
func texts(contents []sdk.Content) string {
	lines := make([]string, 0, len(contents))
	for _, c := range contents {
		lines = append(lines, textOf(c))
	}
	return strings.Join(lines, "\n")
}

// textOf returns the text of a content. One without a text is JSON.
func textOf(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ResourceLink:
		return linkText(c)
	case *sdk.EmbeddedResource:
		if c.Resource != nil && c.Resource.Blob == nil {
			return c.Resource.Text
		}
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return ""
	}
	return string(raw)
}

// linkText describes a link to a resource, which a model may request by its address.
func linkText(l *sdk.ResourceLink) string {
	text := l.URI
	if name := l.Title; name != "" {
		text = name + ": " + text
	} else if l.Name != "" {
		text = l.Name + ": " + text
	}
	if l.Description != "" {
		text += " (" + l.Description + ")"
	}
	return text
}

// filesOf returns the files among contents.
func filesOf(contents []sdk.Content) [][]byte {
	var files [][]byte
	for _, c := range contents {
		if data := fileOf(c); data != nil {
			files = append(files, data)
		}
	}
	return files
}

// mixed returns texts and files as a list.
func mixed(contents []sdk.Content) []any {
	var all []any
	for _, c := range contents {
		if data := fileOf(c); data != nil {
			all = append(all, data)
		} else if text := texts([]sdk.Content{c}); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// withFiles puts files in place of their base64 in a structured result, and reports which
// ones it has.
func withFiles(v any, files [][]byte) (with any, placed []bool) {
	if len(files) == 0 {
		return v, nil
	}
	encoded := make([]string, len(files))
	for i, data := range files {
		encoded[i] = base64.StdEncoding.EncodeToString(data)
	}
	placed = make([]bool, len(files))
	v = replaceText(v, func(text string) any {
		i := slices.Index(encoded, text)
		if i < 0 {
			return text
		}
		placed[i] = true
		return files[i]
	})
	return v, placed
}

// others returns the texts and files next to a structured result that are not in it, in their
// order. Servers also send the result itself as text, or its parts. placed reports which files are
// in it.
func others(result *sdk.CallToolResult, placed []bool) []any {
	var rest []any
	for _, c := range result.Content {
		if data := fileOf(c); data != nil {
			if !placed[0] {
				rest = append(rest, data)
			}
			placed = placed[1:]
			continue
		}
		text := textOf(c)
		if strings.TrimSpace(text) == "" {
			continue
		}
		var parsed any = text
		_ = json.Unmarshal([]byte(text), &parsed) // leaves the text
		if !holds(result.StructuredContent, text) && !holds(result.StructuredContent, parsed) {
			rest = append(rest, text)
		}
	}
	return rest
}

// holds reports whether a decoded JSON value is another one, or has it inside.
func holds(v, inner any) bool {
	if reflect.DeepEqual(v, inner) {
		return true
	}
	has := func(v any) bool { return holds(v, inner) }
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, has)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), has)
	}
	return false
}

// withContent returns a structured result with its other contents as the field content,
// unless it has one; one text is not a list. A result that is not an object becomes a field.
func withContent(v any, more []any) any {
	if len(more) == 0 {
		return v
	}
	var content any = more
	if text, ok := more[0].(string); ok && len(more) == 1 {
		content = text
	}
	r, ok := v.(*value.Record)
	if !ok {
		r = value.NewRecord("", value.Field{Name: "structuredContent", Value: v})
	}
	if _, taken := r.Get("content"); taken {
		return v
	}
	return r.With("content", content)
}

// replaceText returns a value with f applied to each of its texts.
func replaceText(v any, f func(string) any) any {
	switch x := v.(type) {
	case string:
		return f(x)
	case []any:
		all := make([]any, len(x))
		for i, item := range x {
			all[i] = replaceText(item, f)
		}
		return all
	case *value.Record:
		for name, item := range x.All() {
			x = x.With(name, replaceText(item, f))
		}
		return x
	}
	return v
}

// described is how a server describes a resource.
type described struct{ name, description string }

// addResources adds the resources of the document. A server need not list a resource, as
// its templates have any number of them.
func (s *Server) addResources(ctx context.Context, session *sdk.ClientSession, caps *sdk.ServerCapabilities, found *offers) error {
	if len(s.declared.Resources) == 0 {
		return nil
	}
	if caps.Resources == nil {
		return &answerError{"the server has no resources"}
	}
	known, err := knownResources(ctx, session)
	if err != nil {
		return err
	}
	for _, address := range s.declared.Resources {
		t, err := s.resourceOf(address, known[address])
		if err != nil {
			return err
		}
		found.tools = append(found.tools, t)
	}
	return nil
}

// knownResources returns the resources and the templates that a server lists.
func knownResources(ctx context.Context, session *sdk.ClientSession) (map[string]described, error) {
	known := map[string]described{}
	fixed, err := collect(session.Resources(ctx, nil))
	if err != nil {
		return nil, err
	}
	for _, r := range fixed {
		known[r.URI] = described{r.Name, r.Description}
	}
	templates, err := collect(session.ResourceTemplates(ctx, nil))
	if err != nil && !isUnknownMethod(err) { // some servers have resources but no templates
		return nil, err
	}
	for _, r := range templates {
		known[r.URITemplate] = described{r.Name, r.Description}
	}
	return known, nil
}

// isUnknownMethod reports whether a server does not have the method of a request.
func isUnknownMethod(err error) bool {
	const methodNotFound = -32601
	answer := answerOf(err)
	return answer != nil && answer.Code == methodNotFound
}

// resourceOf makes a tool that reads a resource. It is called read_ and the name of the
// resource, or the id of the declaration for a resource that the server does not list.
func (s *Server) resourceOf(address string, d described) (*serverTool, error) {
	template, err := uritemplate.New(address)
	if err != nil {
		return nil, &answerError{fmt.Sprintf("resource %s: %v", address, err)}
	}
	if d.name == "" {
		d.name = s.declared.ID
	}
	if d.description == "" {
		d.description = "Reads " + address
	}
	r := s.newTool("resource "+address, "read_"+d.name, d.description)
	r.repeatable, r.info.ReadOnly = true, true
	for _, name := range template.Varnames() {
		r.info.Inputs = append(r.info.Inputs, &spec.Variable{ID: name, Type: spec.Type{Name: "text"}, Optional: isOptional(template, name)})
	}
	r.info.Parameters = tool.Schema(r.info.Inputs)
	r.send = func(ctx context.Context, session *sdk.ClientSession, args map[string]any) (any, error) {
		uri, err := expand(template, args)
		if err != nil {
			return nil, &refusal{err.Error()}
		}
		result, err := session.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
		if err != nil {
			return nil, err
		}
		return contentsOf(result.Contents), nil
	}
	return r, nil
}

// isOptional reports whether a variable of a template is part of the query, which is
// complete without it.
func isOptional(t *uritemplate.Template, name string) bool {
	raw := t.Raw()
	for _, part := range strings.Split(raw, "{")[1:] {
		part, _, _ = strings.Cut(part, "}")
		if op := part[:min(1, len(part))]; op != "?" && op != "&" {
			continue
		}
		for _, v := range strings.Split(part[1:], ",") {
			if v, _, _ = strings.Cut(v, ":"); strings.TrimSuffix(v, "*") == name {
				return true
			}
		}
	}
	return false
}

// expand returns the address of a resource.
func expand(t *uritemplate.Template, args map[string]any) (string, error) {
	values := uritemplate.Values{}
	for name, v := range args {
		values.Set(name, uritemplate.String(value.Text(value.FromGo(v))))
	}
	return t.Expand(values)
}

// contentsOf returns the content of a resource: a text, or bytes. A resource with several
// parts, such as a folder, is a list of records with their addresses.
func contentsOf(parts []*sdk.ResourceContents) any {
	if len(parts) == 1 {
		return contentOf(parts[0])
	}
	list := make([]any, 0, len(parts))
	for _, part := range parts {
		list = append(list, map[string]any{"uri": part.URI, "content": contentOf(part)})
	}
	return list
}

func contentOf(part *sdk.ResourceContents) any {
	if part.Blob != nil {
		return part.Blob
	}
	return part.Text
}

// addPrompts adds the prompts of the document.
func (s *Server) addPrompts(ctx context.Context, session *sdk.ClientSession, caps *sdk.ServerCapabilities, found *offers) error {
	if len(s.declared.Prompts) == 0 {
		return nil
	}
	var listed []*sdk.Prompt
	if caps.Prompts != nil {
		var err error
		if listed, err = collect(session.Prompts(ctx, nil)); err != nil {
			return err
		}
	}
	known := map[string]*sdk.Prompt{}
	var names []string
	for _, p := range listed {
		known[p.Name], names = p, append(names, p.Name)
	}
	for _, name := range s.declared.Prompts {
		if known[name] == nil {
			return &answerError{unknown("prompt", name, names)}
		}
		found.tools = append(found.tools, s.promptOf(known[name]))
	}
	return nil
}

// promptOf makes a tool that returns the text of a prompt.
func (s *Server) promptOf(p *sdk.Prompt) *serverTool {
	r := s.newTool("prompt "+p.Name, "prompt_"+p.Name, p.Description)
	r.repeatable, r.info.ReadOnly = true, true
	properties, required := map[string]any{}, []string{}
	for _, a := range p.Arguments {
		r.info.Inputs = append(r.info.Inputs, &spec.Variable{ID: a.Name, Type: spec.Type{Name: "text"}, Optional: !a.Required})
		properties[a.Name] = map[string]any{"type": "string", "description": a.Description}
		if a.Required {
			required = append(required, a.Name)
		}
	}
	raw, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required})
	if err != nil { // objects, lists and texts always encode
		raw = []byte(`{"type":"object"}`)
	}
	r.info.Parameters = raw
	r.send = func(ctx context.Context, session *sdk.ClientSession, args map[string]any) (any, error) {
		given := map[string]string{}
		for name, v := range args {
			given[name] = value.Text(value.FromGo(v))
		}
		result, err := session.GetPrompt(ctx, &sdk.GetPromptParams{Name: p.Name, Arguments: given})
		if err != nil {
			return nil, err
		}
		return promptText(result.Messages), nil
	}
	return r
}

// promptText returns the texts of a prompt's messages, with an empty line between them.
func promptText(messages []*sdk.PromptMessage) string {
	lines := make([]string, 0, len(messages))
	for _, m := range messages {
		lines = append(lines, textOf(m.Content))
	}
	return strings.Join(lines, "\n\n")
}
