package openapi

import (
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/input"
)

// shape is what a value of the file can be. Other kinds of values are reported: nothing could
// be read from them, so a tool would lack a parameter, its body or its credentials.
type shape struct {
	kind input.Kind        // Null for any value
	or   input.Kind        // another kind; Null for none
	keys map[string]*shape // of a mapping
	each *shape            // of the elements of a list, or of the values of a mapping that are not in keys; nil for any
}

// fileShape returns the shape of a file, of OpenAPI 3 or Swagger 2. What operations reports is
// not in it.
func fileShape() *shape {
	text := &shape{kind: input.Text}
	object, texts := &shape{kind: input.Map}, &shape{kind: input.List, each: &shape{}}
	listOf := func(s *shape) *shape { return &shape{kind: input.List, each: s} }
	mapOf := func(s *shape) *shape { return &shape{kind: input.Map, each: s} }
	schema := &shape{kind: input.Map, or: input.Bool}
	schema.keys = map[string]*shape{"$ref": text, "properties": mapOf(schema), "items": schema, "required": {kind: input.List, or: input.Bool},
		"allOf": listOf(schema), "anyOf": listOf(schema), "oneOf": listOf(schema)}
	content := mapOf(&shape{kind: input.Map, keys: map[string]*shape{"schema": schema, "encoding": object}})
	parameter := &shape{kind: input.Map, keys: map[string]*shape{"$ref": text, "name": text, "in": text, "schema": schema, "content": content}}
	body := &shape{kind: input.Map, keys: map[string]*shape{"$ref": text, "content": content}}
	response := &shape{kind: input.Map, keys: map[string]*shape{"$ref": text, "content": content, "schema": schema}}
	security := listOf(mapOf(listOf(text)))
	servers := listOf(&shape{kind: input.Map, keys: map[string]*shape{"url": text, "variables": mapOf(object)}})
	operation := &shape{keys: map[string]*shape{"parameters": listOf(parameter), "requestBody": body, "responses": mapOf(response),
		"security": security, "servers": servers, "consumes": texts, "produces": texts}}
	item := &shape{keys: map[string]*shape{"$ref": text, "parameters": listOf(parameter), "servers": servers}}
	for _, method := range methods {
		item.keys[method] = operation
	}
	return &shape{kind: input.Map, keys: map[string]*shape{
		"info": object, "servers": servers, "paths": mapOf(item), "security": security, "securityDefinitions": mapOf(object), "definitions": mapOf(schema),
		"parameters": mapOf(parameter), "responses": mapOf(response), "consumes": texts, "produces": texts, "schemes": texts,
		"components": {kind: input.Map, keys: map[string]*shape{"schemas": mapOf(schema), "parameters": mapOf(parameter), "requestBodies": mapOf(body),
			"responses": mapOf(response), "securitySchemes": mapOf(object)}},
	}}
}

// checkShape reports the values below n that are not of the shape. path has the keys of n.
func (c *converter) checkShape(s *shape, n *input.Node, path string) {
	if s.kind != input.Null && n.Kind != s.kind && (s.or == input.Null || n.Kind != s.or) {
		c.note(input.Malformed, n, "The value of %s is ignored: expected %s, not %s.", path, s.kind.Noun(), n.Describe())
		return
	}
	for _, e := range n.Items {
		if s.each != nil {
			c.checkShape(s.each, e, path)
		}
	}
	for _, p := range n.Pairs {
		below := s.keys[p.Key]
		if below == nil && !strings.HasPrefix(p.Key, "x-") {
			below = s.each
		}
		if below != nil && p.Value.Kind != input.Null { // a key without a value is an absent one
			c.checkShape(below, p.Value, strings.TrimPrefix(path+"."+p.Key, "."))
		}
	}
}
