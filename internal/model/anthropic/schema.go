package anthropic

import (
	"encoding/json"
	"slices"
	"strings"
)

// schemaKeywords are the keywords of schemas that the provider has for the form of an answer. Others
// become a part of the description.
var schemaKeywords = strings.Fields(`$ref $defs definitions type anyOf oneOf allOf description title enum const
	properties additionalProperties required items minItems format pattern`)

// schemaFormats are the formats of texts that the provider has.
var schemaFormats = strings.Fields("date-time time date duration email hostname uri ipv4 ipv6 uuid")

// ClosedSchema returns a schema in the form that Anthropic's models are bound to, also in Bedrock: without keywords that the provider
// refuses, and with closed objects. A schema that the provider refuses as a whole stays refused:
// a recursive one, or one of an object without declared properties.
func ClosedSchema(raw json.RawMessage) json.RawMessage {
	s, err := parseObject(raw)
	if err != nil {
		return raw // true or false
	}
	var moved []string
	var out object
	for _, m := range s {
		if m.name == "$schema" || m.name == "$id" || m.name == "$comment" { // restrict nothing
			continue
		}
		if !accepted(m) {
			moved = append(moved, m.name+": "+string(m.value))
			continue
		}
		switch m.name {
		case "properties", "$defs", "definitions":
			m.value = closedMembers(m.value)
		case "items", "additionalProperties":
			m.value = ClosedSchema(m.value)
		case "anyOf", "oneOf", "allOf":
			m.value = closedList(m.value)
		}
		out = append(out, m)
	}
	if s.get("properties") != nil {
		out.set("additionalProperties", json.RawMessage("false"))
	}
	if len(moved) > 0 {
		text := "{" + strings.Join(moved, ", ") + "}"
		if before := out.text("description"); before != "" {
			text = before + "\n\n" + text
		}
		out.setText("description", text)
	}
	return out.json()
}

// accepted reports whether the provider has a keyword with its value.
func accepted(m member) bool {
	switch m.name {
	case "minItems":
		return string(m.value) == "0" || string(m.value) == "1"
	case "format":
		var format string
		return json.Unmarshal(m.value, &format) == nil && slices.Contains(schemaFormats, format)
	}
	return slices.Contains(schemaKeywords, m.name)
}

// closedMembers applies ClosedSchema to the members of an object.
func closedMembers(raw json.RawMessage) json.RawMessage {
	o, err := parseObject(raw)
	if err != nil {
		return raw
	}
	for i := range o {
		o[i].value = ClosedSchema(o[i].value)
	}
	return o.json()
}

// closedList applies ClosedSchema to the elements of a list.
func closedList(raw json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return raw
	}
	for i := range list {
		list[i] = ClosedSchema(list[i])
	}
	return array(list)
}
