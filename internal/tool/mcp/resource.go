package mcp

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

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
