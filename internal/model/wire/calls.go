package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// maxCallName is how many characters all providers accept as the name of a tool.
const maxCallName = 64

// unnamedCall is the name of calls without one.
const unnamedCall = "unnamed"

// WithPlainCalls returns messages whose calls all providers accept: models invent names of tools, such
// as multi_tool_use.parallel, and write arguments that are not JSON, and providers reject both in
// the next request. Names of offered tools stay.
func WithPlainCalls(messages []chat.Message, offered []model.Tool) []chat.Message {
	out := messages
	for i := range messages {
		if m := &messages[i]; m.Name == "" && !m.HasCalls() {
			continue
		}
		plain, changed := plainCalls(messages[i], offered)
		if !changed {
			continue
		}
		if &out[0] == &messages[0] {
			out = slices.Clone(messages)
		}
		out[i] = plain
	}
	return out
}

// plainCalls replaces the calls of a message, and the name of the tool in a result.
func plainCalls(m chat.Message, offered []model.Tool) (plain chat.Message, changed bool) {
	if role := NormalizeRole(m.Role); role == chat.Tool && m.Name != "" {
		name := plainCallName(m.Name, offered)
		m.Name, changed = name, name != m.Name
	}
	blocks := m.Blocks
	for i, b := range m.Blocks {
		if b.Call == nil {
			continue
		}
		c := *b.Call
		c.Name, c.Arguments = plainCallName(c.Name, offered), string(Arguments(c.Arguments))
		if c == *b.Call {
			continue
		}
		if &blocks[0] == &m.Blocks[0] {
			blocks = slices.Clone(blocks)
		}
		if c.Name != b.Call.Name && b.Item != nil && namesCall(b.Item, b.Call.Name) {
			blocks[i].Item = nil
		}
		blocks[i].Call, changed = &c, true
	}
	m.Blocks = blocks
	return m, changed
}

// plainCallName returns the name of a call as all providers accept it.
func plainCallName(name string, offered []model.Tool) string {
	if name != "" && len(name) <= maxCallName && PlainID(name) == name || slices.ContainsFunc(offered, func(t model.Tool) bool { return t.Name == name && name != "" }) {
		return name
	}
	if name == "" {
		return unnamedCall
	}
	name = PlainID(name)
	return name[:min(len(name), maxCallName)]
}

// namesCall reports whether an item has the name of its call.
func namesCall(item *chat.Item, name string) bool {
	quoted, _ := json.Marshal(name) // a text always encodes
	return strings.Contains(item.JSON, string(quoted))
}

// Function is a tool in the format of OpenAI and Ollama.
type Function struct {
	Type     string `json:"type"` // always function
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict,omitempty"` // set by clients of servers that have it
	} `json:"function"`
}

// Functions converts tools.
func Functions(tools []model.Tool) []Function {
	list := make([]Function, len(tools))
	for i, t := range tools {
		f := &list[i]
		f.Type, f.Function.Name, f.Function.Description, f.Function.Parameters = "function", t.Name, t.Description, t.Parameters
	}
	return list
}

// NoHostedTools returns the error of a tool that a provider without hosted tools cannot run, nil for
// none.
func NoHostedTools(tools []model.Tool, provider string) error {
	for _, t := range tools {
		if t.Hosted != "" {
			return fmt.Errorf("tool %s: %s has no hosted tool %s", t.Name, provider, t.Hosted)
		}
	}
	return nil
}

// EmptySchema is the schema of a tool without arguments.
const EmptySchema = `{"type":"object","properties":{}}`

// schemaCache has the schemas of the tools of the last request: mostly, the next one has the same tools.
type schemaCache struct {
	last atomic.Pointer[completedSchemas]
}

// completedSchemas are schemas as tools have them, and as they are sent.
type completedSchemas struct{ given, sent []json.RawMessage }

// complete returns tools whose parameters are schemas of objects with the keyword
// properties. Servers of tools leave out both, and most providers require them.
func (s *schemaCache) complete(tools []model.Tool) []model.Tool {
	if len(tools) == 0 {
		return tools
	}
	last := s.last.Load()
	if last == nil || !slices.EqualFunc(last.given, tools, func(given json.RawMessage, t model.Tool) bool { return bytes.Equal(given, t.Parameters) }) {
		last = &completedSchemas{}
		for i := range tools {
			given := tools[i].Parameters
			last.given, last.sent = append(last.given, given), append(last.sent, objectSchema(given))
		}
		s.last.Store(last)
	}
	changed := slices.Clone(tools)
	for i := range changed {
		changed[i].Parameters = last.sent[i]
	}
	return changed
}

// objectSchema completes a schema to one of an object. What is not a schema becomes
// EmptySchema.
func objectSchema(raw json.RawMessage) json.RawMessage {
	var schema map[string]json.RawMessage
	if json.Unmarshal(raw, &schema) != nil || len(schema) == 0 {
		return json.RawMessage(EmptySchema)
	}
	var properties map[string]json.RawMessage
	_ = json.Unmarshal(schema["properties"], &properties) // leaves nil
	if string(schema["type"]) == `"object"` && properties != nil {
		return raw
	}
	schema["type"] = json.RawMessage(`"object"`)
	if properties == nil {
		schema["properties"] = json.RawMessage("{}")
	}
	raw, _ = json.Marshal(schema) // decoded JSON always encodes
	return raw
}
