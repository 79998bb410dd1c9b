//go:build !js

package lsp

import (
	"io/fs"
	"regexp"
	"sync"

	"github.com/qtype-dev/qtype/docs"
)

// A section of a page of the reference.
var referenceSection = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^## (\w+)$`) })

// referenceSections returns the page of each section of the reference.
var referenceSections = sync.OnceValue(func() map[string]string {
	sections := map[string]string{}
	pages, _ := fs.Glob(docs.Files, "reference/*.md") // the pattern is valid
	for _, page := range pages {
		text, _ := docs.Files.ReadFile(page) // it was listed
		for _, m := range referenceSection().FindAllSubmatch(text, -1) {
			sections[string(m[1])] = page
		}
	}
	return sections
})
