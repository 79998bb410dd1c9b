package openapi

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/input"
)

// reportRest reports the keys that no tool contains. Definitions to which no operation refers say
// nothing about the tools.
func (c *converter) reportRest() {
	sections := []*input.Node{c.root.Get("definitions"), c.root.Get("parameters"), c.root.Get("responses")}
	for _, section := range c.root.Get("components").Entries() {
		sections = append(sections, section.Value)
	}
	for _, section := range sections {
		if section == nil {
			continue
		}
		for _, p := range section.Pairs {
			if !p.Value.IsRead() {
				p.Value.Use()
			}
		}
	}
	c.report.RestByName(append(c.parts, c.root), isAboutTheAPI)
}

// isAboutTheAPI reports whether a key only describes the API to its readers, or is a type that
// the other keys of its schema imply.
func isAboutTheAPI(key string) bool {
	return strings.HasPrefix(key, "x-") || slices.Contains([]string{"version", "contact", "license", "termsOfService", "tags", "externalDocs", "example", "examples", "deprecated",
		"title", "summary", "description", "info", "jsonSchemaDialect", "$schema", "type", "format"}, key)
}
