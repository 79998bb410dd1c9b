package openai

import (
	"encoding/json"

	"github.com/qtype-dev/qtype/model"
)

// defaultTextProperty is the property of the arguments that has the text of a call with a grammar.
const defaultTextProperty = "input"

// textProperties returns the properties that get the texts of calls, by the names of the tools with
// grammars: the only property of a tool's parameters.
func textProperties(tools []model.Tool) map[string]string {
	properties := map[string]string{}
	for _, t := range tools {
		if t.Grammar == nil {
			continue
		}
		var schema struct {
			Properties object `json:"properties"`
		}
		properties[t.Name] = defaultTextProperty
		if json.Unmarshal(t.Parameters, &schema) == nil && len(schema.Properties) == 1 {
			for name := range schema.Properties {
				properties[t.Name] = name
			}
		}
	}
	return properties
}

// textArguments returns the arguments of a call with a text.
func textArguments(property, text string) string {
	if property == "" {
		property = defaultTextProperty
	}
	return string(encode(map[string]string{property: text}))
}

// argumentsText returns the text of textArguments. Arguments in another form are the text.
func argumentsText(arguments string) string {
	var texts map[string]string
	if json.Unmarshal([]byte(arguments), &texts) == nil && len(texts) == 1 {
		for _, text := range texts {
			return text
		}
	}
	return arguments
}
