package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// object is a JSON object that keeps the order of its members, so that what the provider sent goes
// back as it came.
type object []member

// member is a member of an object.
type member struct {
	name  string
	value json.RawMessage
}

// parseObject reads a JSON object.
func parseObject(raw []byte) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("a content block is not an object")
	}
	var o object
	for dec.More() {
		var m member
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m.name, _ = t.(string) // names are strings
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		o = append(o, m)
	}
	return o, nil
}

// get returns a member, nil if there is none or it is null.
func (o object) get(name string) json.RawMessage {
	for _, m := range o {
		if m.name == name && string(m.value) != "null" {
			return m.value
		}
	}
	return nil
}

// text returns a member that is a string, empty for others.
func (o object) text(name string) string {
	var text string
	_ = json.Unmarshal(o.get(name), &text) // leaves an empty text
	return text
}

// set replaces a member, or adds it at the end.
func (o *object) set(name string, value json.RawMessage) {
	for i := range *o {
		if (*o)[i].name == name {
			(*o)[i].value = value
			return
		}
	}
	*o = append(*o, member{name, value})
}

// setText is set for a string.
func (o *object) setText(name, text string) { o.set(name, quote(text)) }

// without returns the object without some members and without null members.
func (o object) without(names ...string) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool {
		return string(m.value) == "null" || slices.Contains(names, m.name)
	})
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, quote(m.name)...), ':'), m.value...)
	}
	return append(b, '}'), nil
}

// array returns a JSON array. Unlike json.Marshal it changes nothing in its elements.
func array(elements []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for i, e := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, e...)
	}
	return append(b, ']')
}

// json returns the object as JSON.
func (o object) json() json.RawMessage {
	raw, _ := o.MarshalJSON() // never fails
	return raw
}

// quote returns a JSON string. It escapes only what JSON requires, as the provider does.
func quote(text string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a text always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
