package remote

import (
	"maps"
	"slices"
	"strings"
)

// FieldsText returns the texts of the fields, a line for each, in the order of their names.
func FieldsText(fields map[string]any) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		texts = appendTexts(texts, fields[name])
	}
	return strings.Join(texts, "\n")
}

func appendTexts(texts []string, v any) []string {
	switch v := v.(type) {
	case string:
		return append(texts, v)
	case []any:
		for _, item := range v {
			texts = appendTexts(texts, item)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			texts = appendTexts(texts, v[name])
		}
	}
	return texts
}
