package langgraph

import (
	"cmp"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/assistant"
	"github.com/qtype-dev/qtype/internal/convert/code"
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

// isOperational reports whether an argument has no effect on the answers, or has a value of the environment.
func isOperational(name string) bool {
	return slices.Contains([]string{"api_key", "openai_api_key", "anthropic_api_key", "google_api_key", "timeout", "max_retries", "streaming", "verbose", "callbacks", "api_version", "azure_endpoint", "region_name", "region",
		"project", "location", "organization", "tags", "credentials_profile_name", "model_provider", "disable_streaming", "rate_limiter"}, name)
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
	m := assistant.Model{Name: name, Parameters: new(document.Block), At: call.Span}
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
		key := assistant.Parameter(code.Python, a.Name)
		switch {
		case a.Name == "" && i == 0, slices.Contains([]string{"model", "model_name", "model_id", "azure_deployment", "deployment_name"}, a.Name), isOperational(a.Name), a.Value.Kind == code.Null:
		case a.Name == "base_url":
			m.BaseURL, _, _ = c.text(a.Value)
		case key != "" && c.value(a.Value).Decimal() != "":
			m.Parameters.Set(key, document.Number(c.value(a.Value).Decimal()))
		case key != "":
			c.Add(input.Assumed.At(a.Value.Span, "the value of %s is not in the file; the provider's default is used", a.Name))
		default:
			c.Add(input.Unsupported.At(a.Value.Span, "the argument %s of the model is not converted", cmp.Or(a.Name, "without a name")))
		}
	}
	id := c.Model(m)
	c.chains[call.Span], c.models[name] = id, id
	return id
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
		return c.Model(assistant.Model{Name: "model", Provider: provider, ID: name, At: e.Span}), nil
	}
	if len(e.Links) > 0 && isModel(e.Links[0].Name) {
		return c.declareModel(e, ""), nil
	}
	name := ""
	if len(e.Links) > 0 {
		name = e.Links[0].Name
	}
	if v := c.values[name]; v != nil && v.Kind == code.Text {
		return c.model(v, at)
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
		id, _ := c.model(e, call.Span)
		c.models[name], c.bound[name] = id, c.tools(call.Arg("tools", 0), call.Span)
	}
}

// maxChain limits the tokens before bind_tools that can be its model.
const maxChain = 200
