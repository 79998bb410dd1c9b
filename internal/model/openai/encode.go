package openai

import (
	"bytes"
	"encoding/json"
	"maps"

	"github.com/qtype-dev/qtype/spec/chat"
)

// object is a JSON object whose values are as a provider sent them.
type object map[string]json.RawMessage

// encode returns a value as JSON. Unlike json.Marshal it leaves the characters of HTML as they are,
// also in the JSON of a provider.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return json.RawMessage("null") // texts, and JSON that was decoded before, always encode
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// with returns the object with texts set.
func (o object) with(texts map[string]string) object {
	all := make(object, len(o)+len(texts))
	maps.Copy(all, o)
	for name, text := range texts {
		all[name] = encode(text)
	}
	return all
}

// attributes decodes the JSON of an item that has attributes of a block; an item without JSON has none.
func attributes(item *chat.Item) object {
	var o object
	if item != nil && item.JSON != "" {
		_ = json.Unmarshal([]byte(item.JSON), &o) // leaves nil: an item of this client is an object
	}
	return o
}

// isSet reports whether a value of an answer is more than null.
func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
