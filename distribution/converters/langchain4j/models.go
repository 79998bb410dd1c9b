package langchain4j

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/distribution/converters/assistant"
	"github.com/qtype-dev/qtype/distribution/converters/code"
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

// ignored returns why a setting has no effect on the answers; empty if it has one.
func ignored(name string) string {
	switch {
	case slices.Contains([]string{"apiKey", "organizationId", "projectId", "project", "location", "region", "serviceVersion", "credentials", "endpoint", "serviceUrl"}, name):
		return "it comes from the environment"
	case slices.Contains([]string{"logRequests", "logResponses", "logRequestsAndResponses", "listeners"}, name):
		return "logs and traces are those of qtype"
	case slices.Contains([]string{"httpClientBuilder", "proxy", "client"}, name):
		return "connections are those of qtype"
	}
	return ""
}

// model declares a model with settings and returns its id.
func (c *conversion) model(name, provider string, settings []setting, at source.Span) string {
	m := assistant.Model{Name: name, Provider: provider, Parameters: new(document.Block), At: at, Retries: -1}
	for _, s := range settings {
		c.set(&m, s)
	}
	return c.Model(m)
}

// set applies a setting.
func (c *conversion) set(m *assistant.Model, s setting) {
	value := c.value(s.value)
	key := assistant.Parameter(code.Java, s.name)
	switch {
	case slices.Contains([]string{"modelName", "modelId", "deploymentName", "model"}, s.name):
		m.ID = c.modelName(s)
	case s.name == "baseUrl":
		m.BaseURL = c.modelName(s)
	case key == "top_k" && m.Provider == "openai":
		c.Add(input.Unsupported.At(s.at, "%s is no parameter of %s", s.name, m.Provider))
	case key == "stop":
		if stops, ok := c.texts(value); ok {
			set(m.Parameters, key, document.NameList(stops))
		} else if stops, ok := c.text(value, ""); ok {
			set(m.Parameters, key, document.NameList(strings.Split(stops, ",")))
		} else {
			c.Add(input.Assumed.At(s.at, "the value of stop is not in the file; answers do not end there"))
		}
	case key != "":
		if number := value.Decimal(); number != "" {
			set(m.Parameters, key, document.Number(number))
		} else {
			c.Add(input.Assumed.At(s.at, "the value of %s is not in the file; the provider's default is used", s.name))
		}
	case s.name == "timeout":
		if m.Timeout = durationOf(value); m.Timeout == "" {
			c.Add(input.Assumed.At(s.at, "the timeout is not in the file; using the default"))
		}
	case s.name == "maxRetries":
		n, isPositive := value.Int()
		if m.Retries = n; !isPositive && value.Decimal() != "0" {
			m.Retries = -1
			c.Add(input.Assumed.At(s.at, "the value of maxRetries is not in the file; using the default"))
		}
	case ignored(s.name) != "":
		c.Add(input.Ignored.At(s.at, "%s is ignored: %s", s.name, ignored(s.name)))
	default:
		c.Add(input.Unsupported.At(s.at, "the setting %s of the model is not converted", s.name))
	}
}

// durationOf returns the duration of Duration.ofSeconds(20), or of a text such as 20s or PT20S; empty
// for another value.
func durationOf(e *code.Expr) string {
	if e == nil {
		return ""
	}
	for name, unit := range map[string]string{"ofSeconds": "s", "ofMinutes": "m", "ofMillis": "ms", "ofHours": "h"} {
		if l := e.Link(name); l != nil {
			if n, ok := l.Arg("", 0).Int(); ok {
				return strconv.Itoa(n) + unit
			}
		}
	}
	text := strings.ToLower(strings.TrimPrefix(e.Text, "PT"))
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return text
	}
	return ""
}

// set sets a key once: the last value counts.
func set(b *document.Block, key string, value any) {
	b.Entries = slices.DeleteFunc(b.Entries, func(e document.Entry) bool { return e.Key == key })
	b.Set(key, value)
}

// modelName returns the text of a setting; a name of a constant is its last part, as its value is
// elsewhere.
func (c *conversion) modelName(s setting) string {
	if text, ok := c.text(s.value, ""); ok {
		return text
	}
	if constant := s.value.Last(); constant != "" && strings.ToUpper(constant) == constant {
		name := strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(constant, "_", "-")), "gpt-4-o", "gpt-4o")
		name = versions().ReplaceAllString(name, "$1.$2")
		c.Add(input.Assumed.At(s.at, "%s is the constant %s; using %s", s.name, constant, name))
		return name
	}
	c.Add(input.Assumed.At(s.at, "the value of %s is not in the file", s.name))
	return ""
}

// versions matches the version in a name such as gpt-4-1-nano. A date has more digits.
var versions = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^((?:gpt|gemini)-\d)-(\d)\b`) })

// modelChain declares the model that a chain such as OpenAiChatModel.builder()….build() makes.
func (c *conversion) modelChain(e *code.Expr, name string) string {
	first := e.Links[0]
	provider, known, _ := modelClass(first.Name)
	if !known {
		c.Add(input.Unsupported.At(first.Span, "the class %s has no counterpart; a model of openai is in its place", first.Name))
		provider = "openai"
	}
	c.source.Claim(e, "the model")
	e.Use("builder", "build")
	var settings []setting
	for _, l := range e.Links[1:] {
		if l.Name == "builder" || l.Name == "build" || !l.Called {
			continue
		}
		l.Use()
		settings = append(settings, setting{name: l.Name, at: l.Span, value: l.Arg("", 0)})
	}
	return c.model(cmp.Or(name, "assistant"), provider, settings, first.Span)
}
