package langchain4j

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/assistant"
	"github.com/qtype-dev/qtype/distribution/converters/code"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/source"
)

// Setting is an entry of a file of properties.
type Setting struct {
	Key   string      // with dots
	Value string      // as written
	At    source.Span // position of the key
}

// FromYAML returns the settings of an application.yml, whose keys are joined by dots.
func FromYAML(n *input.Node) []Setting { return fromYAML(n, "", n.Mark()) }

func fromYAML(n *input.Node, key string, at source.Span) []Setting {
	var all []Setting
	switch n.Kind {
	case input.Map:
		for _, p := range n.Entries() {
			all = append(all, fromYAML(p.Value, strings.TrimPrefix(key+"."+p.Key, "."), p.KeySpan)...)
		}
	case input.List: // as Spring reads it, a text with commas is a list
		var texts []string
		for i, item := range n.Elements() {
			if item.Kind >= input.List {
				all = append(all, fromYAML(item, key+"["+strconv.Itoa(i)+"]", item.Mark())...)
				continue
			}
			texts = append(texts, item.Text)
		}
		if len(texts) > 0 {
			all = append(all, Setting{key, strings.Join(texts, ","), at})
		}
	case input.Null:
	default:
		all = append(all, Setting{key, n.Text, at})
	}
	return all
}

// FromProperties returns the settings of a properties file in order.
func FromProperties(file *source.File) []Setting {
	var all []Setting
	text, offset, begin := "", 0, 0
	for line := range strings.Lines(string(file.Text)) {
		trimmed := strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t\f")
		if text == "" {
			begin = offset + len(line) - len(strings.TrimLeft(line, " \t\f"))
		}
		offset += len(line)
		if text == "" && (trimmed == "" || strings.ContainsAny(trimmed[:1], "#!")) {
			continue
		}
		if before, more := strings.CutSuffix(trimmed, `\`); more {
			text += before
			continue
		}
		text += trimmed
		if i := strings.IndexAny(text, "=:"); i > 0 {
			key := strings.TrimSpace(text[:i])
			all = append(all, Setting{key, strings.TrimSpace(text[i+1:]), input.Bytes(file, begin, len(key))})
		}
		text = ""
	}
	return all
}

// properties reads the settings of Spring or Quarkus.
func (c *conversion) properties(all []Setting) {
	models := map[string][]setting{} // by the provider, or NAME.PROVIDER
	places := map[string]source.Span{}
	memory := map[string]Setting{}
	var others []string
	for _, p := range all {
		rest, ours := strings.CutPrefix(strings.TrimPrefix(p.Key, "quarkus."), "langchain4j.")
		switch {
		case strings.HasPrefix(p.Key, "%") && strings.Contains(p.Key, "langchain4j."):
			c.Add(input.Ignored.At(p.At, "%s is of a profile; only settings without one are converted", p.Key))
		case !ours:
			others = append(others, p.Key)
		case strings.HasPrefix(rest, "chat-memory."):
			memory[rest[strings.LastIndexByte(rest, '.')+1:]] = p
		default:
			c.property(rest, p, models, places)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(models)) {
		provider, known := assistant.Provider(code.Java, key)
		if _, of, named := strings.Cut(key, "."); named && !known {
			provider, _ = assistant.Provider(code.Java, of)
		}
		name := strings.ReplaceAll(key, ".", "_")
		c.models[name] = c.model(name, provider, models[key], places[key])
	}
	c.propertyMemory(memory)
	if i := slices.IndexFunc(all, func(p Setting) bool { return slices.Contains(others, p.Key) }); i >= 0 {
		c.Add(input.Ignored.At(all[i].At, "settings of other libraries are ignored: %s", strings.Join(others, ", ")))
	}
}

// property reads a key after langchain4j.
func (c *conversion) property(rest string, p Setting, models map[string][]setting, places map[string]source.Span) {
	owner, name, isModel := strings.Cut(rest, ".chat-model.")
	if !isModel {
		owner, name, isModel = strings.Cut(rest, ".streaming-chat-model.")
	}
	if !isModel {
		if i := strings.LastIndexByte(rest, '.'); i > 0 {
			owner, name = rest[:i], rest[i+1:]
		}
	}
	_, known := assistant.Provider(code.Java, owner)
	_, named := assistant.Provider(code.Java, owner[strings.IndexByte(owner, '.')+1:])
	switch {
	case known || named:
		models[owner] = append(models[owner], setting{name: camel(name), value: valueOf(p.Value), at: p.At})
		if places[owner].IsZero() {
			places[owner] = p.At
		}
	case isModel:
		c.Add(input.Unsupported.At(p.At, "the provider %s has no counterpart", owner))
	case slices.Contains([]string{"log-requests", "log-responses", "provider", "enable-integration"}, rest[strings.LastIndexByte(rest, '.')+1:]):
		c.Add(input.Ignored.At(p.At, "%s is ignored", p.Key))
	default:
		c.Add(input.Unsupported.At(p.At, "%s is not converted", p.Key))
	}
}

// propertyMemory declares the memory of a properties file.
func (c *conversion) propertyMemory(keys map[string]Setting) {
	if len(keys) == 0 {
		return
	}
	m := assistant.Memory{Name: "chat_memory"}
	limit := func(key string, otherwise int) int {
		p, ok := keys[key]
		if !ok {
			return otherwise
		}
		return c.limit(code.Link{Name: key, Args: []code.Arg{{Value: valueOf(p.Value)}}, Span: p.At}, otherwise)
	}
	kind := strings.ToLower(strings.ReplaceAll(keys["type"].Value, "_", "-"))
	switch _, tokens := keys["max-tokens"]; {
	case kind == "token-window", kind == "" && tokens:
		m.MaxTokens = limit("max-tokens", 1000)
	case kind == "", kind == "message-window":
		m.MaxMessages = limit("max-messages", 10)
	default:
		c.Add(input.Unsupported.At(keys["type"].At, "a memory of the type %s is not converted; using message_window", keys["type"].Value))
		m.MaxMessages = limit("max-messages", 10)
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains([]string{"type", "max-messages", "max-tokens"}, key) {
			c.Add(input.Unsupported.At(keys[key].At, "%s is not converted", keys[key].Key))
		}
	}
	c.Memory(m)
}

// camel returns a key in the spelling of Java: modelName for model-name.
func camel(name string) string {
	parts := strings.Split(name, "-")
	for i, p := range parts[1:] {
		if p != "" {
			parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, "")
}

// valueOf returns the value of a property. Of ${NAME:default} it is the default; without one the
// value is not in the file.
func valueOf(text string) *code.Expr {
	if inner, ok := strings.CutPrefix(text, "${"); ok && strings.HasSuffix(inner, "}") {
		_, otherwise, given := strings.Cut(strings.TrimSuffix(inner, "}"), ":")
		if !given {
			return &code.Expr{Kind: code.Other}
		}
		text = otherwise
	}
	e := &code.Expr{Kind: code.Text, Text: text}
	if _, err := strconv.ParseFloat(text, 64); err == nil && strings.Trim(cmp.Or(text, "x"), "0123456789.-") == "" {
		e.Kind = code.Number
	}
	return e
}
