package lsp

import (
	"cmp"
	"io/fs"
	"regexp"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/docs"
)

// referencePage is the address of the pages that describe the keys.
const referencePage = "https://github.com/qtype-dev/qtype/blob/main/docs/"

// A section of a page of the reference.
var referenceSection = regexp.MustCompile(`(?m)^## (\w+)$`)

// referenceSections returns the page of each section of the reference.
var referenceSections = sync.OnceValue(func() map[string]string {
	sections := map[string]string{}
	pages, _ := fs.Glob(docs.Files, "reference/*.md") // the pattern is valid
	for _, page := range pages {
		text, _ := docs.Files.ReadFile(page) // it was listed
		for _, m := range referenceSection.FindAllSubmatch(text, -1) {
			sections[string(m[1])] = page
		}
	}
	return sections
})

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
