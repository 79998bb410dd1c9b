package openapi_test

import (
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
)

// isCheckerLimit reports whether an error is about a part of OpenAPI that kin-openapi does
// not know: lists in the style deepObject, nested lists and parts of allOf in forms, and
// parameters without a type.
func isCheckerLimit(err error) bool {
	text := err.Error()
	return strings.Contains(text, "in path has an error: empty value is not allowed") || strings.Contains(text, `invalid serialization method: style="deepObject"`) || strings.Contains(text, "unsupported schema of request body's property") ||
		strings.Contains(text, "failed to decode request body: part") && strings.HasSuffix(text, "undefined")
}

func openapi3filterRoute(c *apiCaller, o *apiOperation) *routers.Route {
	return &routers.Route{Spec: c.document, Path: o.path, PathItem: o.item, Method: o.method, Operation: o.node}
}

// needsCookie reports whether an operation requires a cookie.
func needsCookie(o *apiOperation) bool {
	return slices.ContainsFunc(slices.Concat(o.node.Parameters, o.item.Parameters), func(p *openapi3.ParameterRef) bool {
		return p.Value.In == "cookie" && p.Value.Required
	})
}

// matchPath returns the values of the placeholders of a path.
func matchPath(template, path string) (map[string]string, bool) {
	values := map[string]string{}
	for template != "" {
		before, after, found := strings.Cut(template, "{")
		rest, ok := strings.CutPrefix(path, before)
		if !ok {
			return nil, false
		}
		if !found {
			return values, rest == ""
		}
		name, tail, _ := strings.Cut(after, "}")
		next, _, _ := strings.Cut(tail, "{")
		end := len(rest)
		if next != "" {
			if end = strings.Index(rest, next); end < 0 {
				return nil, false
			}
		}
		values[name], _ = url.PathUnescape(rest[:end])
		template, path = tail, rest[end:]
	}
	return values, path == ""
}

// sampleOf returns a value that a schema accepts, with the required properties of objects.
func sampleOf(ref *openapi3.SchemaRef, depth int) any {
	if ref == nil || ref.Value == nil || depth > 40 {
		return map[string]any{}
	}
	s := ref.Value
	switch {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Const != nil:
		return s.Const
	case s.Example != nil && !s.Type.Is("object") && s.VisitJSON(s.Example) == nil:
		return s.Example
	case s.Type != nil && s.Type.Includes("object") || len(s.Properties) > 0 || len(s.AllOf) > 0 && s.Type == nil:
		return sampleObject(s, depth)
	}
	for _, choice := range slices.Concat(s.AnyOf, s.OneOf) {
		if v := sampleOf(choice, depth+1); v != nil {
			return v
		}
	}
	if s.Type == nil {
		return "x"
	}
	return sampleScalar(s, depth)
}

func sampleObject(s *openapi3.Schema, depth int) any {
	object := map[string]any{}
	for _, part := range s.AllOf {
		v := sampleOf(part, depth+1)
		fields, isObject := v.(map[string]any)
		if !isObject && len(s.AllOf) == 1 {
			return v
		}
		for name, value := range fields {
			object[name] = value
		}
	}
	for _, part := range slices.Concat(first(s.AnyOf), first(s.OneOf)) {
		if fields, ok := sampleOf(part, depth+1).(map[string]any); ok {
			for name, value := range fields {
				object[name] = value
			}
		}
	}
	for name, property := range s.Properties {
		if slices.Contains(s.Required, name) || requiredByChoice(s, name) {
			object[name] = sampleOf(property, depth+1)
		}
	}
	return object
}

func first(all openapi3.SchemaRefs) openapi3.SchemaRefs { return all[:min(1, len(all))] }

// requiredByChoice reports whether the first alternative requires a property of the object.
func requiredByChoice(s *openapi3.Schema, name string) bool {
	for _, part := range slices.Concat(first(s.AnyOf), first(s.OneOf)) {
		if part.Value != nil && slices.Contains(part.Value.Required, name) {
			return true
		}
	}
	return false
}

func sampleScalar(s *openapi3.Schema, depth int) any {
	switch {
	case s.Type.Includes("array"):
		list := []any{}
		for range max(s.MinItems, 1) {
			list = append(list, sampleOf(s.Items, depth+1))
		}
		return list
	case s.Type.Includes("integer"), s.Type.Includes("number"):
		n := 1.0
		if s.Min != nil {
			n = *s.Min + 1
		}
		if s.Max != nil {
			n = min(n, *s.Max)
		}
		return n
	case s.Type.Includes("boolean"):
		return true
	case s.Type.Includes("string"):
		return sampleText(s)
	case s.Type.Is("null"):
		return nil
	}
	return "x"
}

func sampleText(s *openapi3.Schema) string {
	formats := map[string]string{"date": "2026-01-02", "date-time": "2026-01-02T03:04:05Z", "uri": "https://a.example", "uuid": "123e4567-e89b-12d3-a456-426614174000",
		"email": "a@example.org", "ipv4": "127.0.0.1", "byte": "YQ==", "duration": "PT1H", "time": "03:04:05"}
	if text := formats[s.Format]; text != "" {
		return text
	}
	for _, text := range []string{"text", "1", "1a", "#ff0000", "ff0000", "2026-01-02T03:04:05Z", "https://a.example", "v1.0", "a/b", strings.Repeat("a", 40)} {
		if s.VisitJSONString(text) == nil {
			return text
		}
	}
	return strings.Repeat("x", int(s.MinLength))
}
