package langgraph

import (
	"cmp"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/assistant"
	"github.com/qtype-dev/qtype/distribution/converters/code"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/source"
)

// isModel reports whether a call of a name makes a chat model.
func isModel(name string) bool {
	_, known := assistant.Provider(code.Python, name)
	return name == "init_chat_model" || known && strings.Contains(name, "Chat") ||
		slices.Contains([]string{"ChatGroq", "ChatCohere", "ChatDeepSeek", "ChatXAI", "ChatFireworks", "ChatTogether", "ChatHuggingFace", "ChatNVIDIA", "ChatPerplexity"}, name)
}

// ignored returns why an argument has no effect on the answers; empty if it has one.
func ignored(name string) string {
	switch {
	case slices.Contains([]string{"api_key", "openai_api_key", "anthropic_api_key", "google_api_key", "api_version", "azure_endpoint", "region_name", "region", "project", "location", "organization", "credentials_profile_name"}, name):
		return "it comes from the environment"
	case slices.Contains([]string{"verbose", "callbacks", "tags"}, name):
		return "logs and traces are those of qtype"
	case slices.Contains([]string{"streaming", "disable_streaming"}, name):
		return "the caller chooses whether answers are streamed"
	}
	return ""
}

// declareModel declares the model that a chain makes, once for each place, and returns its id.
func (c *conversion) declareModel(e *code.Expr, name string) string {
	if e == nil || len(e.Links) == 0 {
		return ""
	}
	call := &e.Links[0]
	if id := c.chains[call.Span]; id != "" {
		return id
	}
	c.source.Claim(e, "the model")
	m := assistant.Model{Name: name, Parameters: new(document.Block), At: call.Span, Retries: -1}
	written := call.Arg("model", 0)
	for _, other := range []string{"model_name", "model_id", "azure_deployment", "deployment_name"} {
		if a := call.Arg(other, -1); a != nil {
			written = a
		}
	}
	text, _, _ := c.text(written)
	if call.Name == "init_chat_model" {
		provider, _, _ := c.text(call.Arg("model_provider", -1))
		m.Provider, m.ID = c.named(text, provider, call.Span)
	} else {
		var known bool
		if m.Provider, known = assistant.Provider(code.Python, call.Name); !known {
			c.Add(input.Unsupported.At(call.Span, "the class %s has no counterpart; a model of openai is in its place", call.Name))
			m.Provider = "openai"
		}
		m.ID = text
	}
	for i, a := range call.Args {
		c.argument(&m, call, i, a)
	}
	id := c.Model(m)
	c.chains[call.Span], c.models[name] = id, id
	return id
}

// argument applies an argument of a model.
func (c *conversion) argument(m *assistant.Model, call *code.Link, i int, a code.Arg) { //nolint:cyclop // one case for each argument
	key, value := assistant.Parameter(code.Python, a.Name), c.value(a.Value)
	call.Arg(a.Name, i)
	switch {
	case a.Name == "" && i == 0, slices.Contains([]string{"model", "model_name", "model_id", "azure_deployment", "deployment_name", "model_provider"}, a.Name), a.Value.Kind == code.Null:
	case a.Name == "base_url":
		m.BaseURL, _, _ = c.text(a.Value)
	case key == "stop" && (value.Kind == code.List || value.Kind == code.Text):
		stops := document.NameList{}
		for _, item := range append(slices.Clone(value.Items), value) {
			if text, _, ok := c.text(item); ok {
				stops = append(stops, text)
			}
		}
		m.Parameters.Set(key, stops)
	case key != "" && key != "stop" && value.Decimal() != "":
		m.Parameters.Set(key, document.Number(value.Decimal()))
	case key != "":
		c.Add(input.Assumed.At(a.Value.Span, "the value of %s is not in the file; the provider's default is used", a.Name))
	case (a.Name == "timeout" || a.Name == "request_timeout") && value.Decimal() != "" && value.Decimal() != "0":
		m.Timeout = value.Decimal() + "s"
	case a.Name == "max_retries" && value.Decimal() != "" && value.Decimal()[0] != '-':
		m.Retries, _ = value.Int()
	case ignored(a.Name) != "":
		c.Add(input.Ignored.At(a.Value.Span, "%s is ignored: %s", a.Name, ignored(a.Name)))
	default:
		c.Add(input.Unsupported.At(a.Value.Span, "the argument %s of the model is not converted", cmp.Or(a.Name, "without a name")))
	}
}

// named returns the provider and the name of a model such as openai:gpt-4o.
func (c *conversion) named(text, provider string, at source.Span) (of, id string) {
	id = text
	if before, after, ok := strings.Cut(text, ":"); ok && provider == "" {
		provider, id = before, after
	}
	if of, known := assistant.Provider(code.Python, provider); known {
		return of, id
	}
	if provider != "" {
		c.Add(input.Unsupported.At(at, "the provider %s has no counterpart; a model of openai is in its place", provider))
		return "openai", id
	}
	block, known := document.NewModel("", id)
	if !known {
		c.Add(input.Assumed.At(at, "the provider of the model %q is not known; using openai", id))
	}
	of, _ = block.Entries[2].Value.(string)
	return of, id
}

// model returns the id of the model that an argument names, with the tools that are bound to it.
func (c *conversion) model(e *code.Expr, at source.Span) (id string, tools []string) {
	if e == nil {
		return c.AnyModel(at), nil
	}
	if e.Kind == code.Text {
		provider, name := c.named(e.Text, "", e.Span)
		return c.Model(assistant.Model{Name: "model", Provider: provider, ID: name, At: e.Span, Retries: -1}), nil
	}
	if len(e.Links) > 0 && isModel(e.Links[0].Name) {
		return c.declareModel(e, ""), nil
	}
	name := ""
	if len(e.Links) > 0 {
		name = e.Links[0].Name
	}
	if v := c.values[name]; v != nil && v.Kind == code.Text {
		return c.model(c.value(e), at)
	}
	if id := c.models[name]; id != "" {
		return id, c.bound[name]
	}
	if name != "" && len(c.App.Models) == 0 {
		c.Add(input.Assumed.At(at, "the model %s is not in the file", name))
	}
	return c.AnyModel(at), nil
}

// bind reads variables with a model that has tools: llm.bind_tools(tools).
func (c *conversion) bind() {
	for i, t := range c.source.Tokens {
		if !t.Is("bind_tools") || i < 2 {
			continue
		}
		from := i - 1
		for from > 0 && !c.source.Token(from-1).Is("=") && !c.source.Token(from).First && i-from < maxChain {
			from--
		}
		e, _ := c.source.Expr(from)
		call := e.Link("bind_tools")
		name := c.source.AssignedTo(from)
		if call == nil || name == "" {
			continue
		}
		c.source.Claim(e, "the model")
		id, _ := c.model(e, call.Span)
		c.models[name], c.bound[name] = id, c.tools(call.Arg("tools", 0), call.Span)
	}
}

// maxChain limits the tokens before bind_tools that can be its model.
const maxChain = 200
