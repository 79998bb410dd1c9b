package lsp

import (
	"cmp"
	"strings"
)

// referencePage is the address of the pages that describe the keys.
const referencePage = "https://github.com/qtype-dev/qtype/blob/main/docs/"

// referenceLink returns a link to the description of a struct, empty if it has none.
func referenceLink(c *structType) string {
	if c == nil {
		return ""
	}
	section := cmp.Or(c.tag, c.goType.Name())
	page := referenceSections()[section]
	if page == "" {
		return ""
	}
	return "\n\n[Reference: " + section + "](" + referencePage + page + "#" + strings.ToLower(section) + ")"
}
