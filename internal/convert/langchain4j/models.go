package langchain4j

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

// modelClass returns the provider of a class of chat models. known is false for one without a
// counterpart; ok is false for other classes.
func modelClass(name string) (provider string, known, ok bool) {
	class, ok := strings.CutSuffix(name, "ChatModel")
	if !ok || class == "" || class == "Streaming" {
		return "", false, false
	}
	class = strings.TrimSuffix(class, "Streaming")
	provider, known = assistant.Provider(code.Java, class)
	return provider, known, true
}

// setting is a value of a model.
type setting struct {
	name  string // in the spelling of Java
	value *code.Expr
	at    source.Span
}

// isOperational reports whether a setting has no effect on the answers, or has a value of the environment.
func isOperational(name string) bool {
	return slices.Contains([]string{"apiKey", "organizationId", "projectId", "project", "location", "region", "logRequests", "logResponses", "logRequestsAndResponses", "timeout", "maxRetries", "listeners",
		"httpClientBuilder", "customHeaders", "proxy", "build", "serviceVersion", "credentials", "client", "endpoint", "serviceUrl"}, name)
}

// model declares a model with settings and returns its id.
func (c *conversion) model(name, provider string, settings []setting, at source.Span) string {
	m := assistant.Model{Name: name, Provider: provider, Parameters: new(document.Block), At: at}
	for _, s := range settings {
		key := assistant.Parameter(code.Java, s.name)
		switch {
		case slices.Contains([]string{"modelName", "modelId", "deploymentName", "model"}, s.name):
			m.ID = c.text(s)
		case s.name == "baseUrl":
			m.BaseURL = c.text(s)
		case key == "top_k" && provider == "openai":
			c.Add(input.Unsupported.At(s.at, "%s is no parameter of %s", s.name, provider))
		case key != "":
			if number := s.value.Decimal(); number != "" {
				set(m.Parameters, key, document.Number(number))
			} else {
				c.Add(input.Assumed.At(s.at, "the value of %s is not in the file; the provider's default is used", s.name))
			}
		case isOperational(s.name):
		default:
			c.Add(input.Unsupported.At(s.at, "the setting %s of the model is not converted", s.name))
		}
	}
	return c.Model(m)
}

// set sets a key once: the last value counts.
func set(b *document.Block, key string, value any) {
	b.Entries = slices.DeleteFunc(b.Entries, func(e document.Entry) bool { return e.Key == key })
	b.Set(key, value)
}

// text returns the text of a setting; a name of a constant is its last part, as its value is
// elsewhere.
func (c *conversion) text(s setting) string {
	if s.value != nil && s.value.Kind == code.Text {
		return s.value.Text
	}
	if constant := s.value.Last(); constant != "" && strings.ToUpper(constant) == constant {
		name := strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(constant, "_", "-")), "gpt-4-o", "gpt-4o")
		c.Add(input.Assumed.At(s.at, "%s is the constant %s; using %s", s.name, constant, name))
		return name
	}
	c.Add(input.Assumed.At(s.at, "the value of %s is not in the file", s.name))
	return ""
}

// modelChain declares the model that a chain such as OpenAiChatModel.builder()….build() makes.
func (c *conversion) modelChain(e *code.Expr, name string) string {
	first := e.Links[0]
	provider, known, _ := modelClass(first.Name)
	if !known {
		c.Add(input.Unsupported.At(first.Span, "the class %s has no counterpart; a model of openai is in its place", first.Name))
		provider = "openai"
	}
	var settings []setting
	for _, l := range e.Links[1:] {
		if l.Name == "builder" || !l.Called {
			continue
		}
		s := setting{name: l.Name, at: l.Span}
		if len(l.Args) > 0 {
			s.value = l.Args[0].Value
		}
		settings = append(settings, s)
	}
	return c.model(cmp.Or(name, "assistant"), provider, settings, first.Span)
}
