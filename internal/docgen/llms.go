package docgen

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/qtype-dev/qtype/docs"
)

// LLMsFile is the index of the documentation for language models, relative to the root of
// the module, in the form of llmstxt.org.
const LLMsFile = "docs/llms.txt"

// pageAddress is where the pages are.
const pageAddress = "https://raw.githubusercontent.com/qtype-dev/qtype/main/docs/"

var (
	// A row of the tables of docs/README.md: title, page, content.
	pageRow = regexp.MustCompile(`(?m)^\| \[([^\]]*)\]\(([^)]*)\) \| (.*) \|$`)
	// A heading of docs/README.md: of a section, or of a group of pages in one.
	indexHeading = regexp.MustCompile(`(?m)^(###?) (.*)$`)
)

// LLMs returns the text of LLMsFile: the sections of docs/README.md, their groups, and their pages.
func LLMs() (string, error) {
	index, err := docs.Files.ReadFile("README.md")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(`# qtype

> qtype runs LLM applications that are declared in YAML: models, memories, tools and flows of typed steps.
> The program checks, runs, tests and serves documents.

Check each document that you write with ` + "`qtype validate --strict FILE`" + `; ` + "`qtype explain CODE`" + ` explains a message.
` + "`qtype generate skills`" + ` writes a skill for coding assistants, ` + "`qtype mcp`" + ` is a server for them.
`)
	section := ""
	found := indexHeading.FindAllSubmatchIndex(index, -1)
	for i, at := range found {
		end := len(index)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		title := string(index[at[4]:at[5]])
		if at[3]-at[2] == len("##") {
			section = title
		} else {
			title = section + ": " + strings.ToLower(title[:1]) + title[1:]
		}
		writeRows(&b, title, pageRow.FindAllSubmatch(index[at[1]:end], -1))
	}
	return b.String(), nil
}

// writeRows writes a section with its pages, if it has any.
func writeRows(b *strings.Builder, title string, rows [][][]byte) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	for _, r := range rows {
		fmt.Fprintf(b, "- [%s](%s%s): %s\n", r[1], pageAddress, r[2], r[3])
	}
}
