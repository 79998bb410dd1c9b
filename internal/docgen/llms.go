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

// A row of the tables of docs/README.md: title, page, content.
var pageRow = regexp.MustCompile(`(?m)^\| \[([^\]]*)\]\(([^)]*)\) \| (.*) \|$`)

// LLMs returns the text of LLMsFile: the sections and pages of docs/README.md.
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
	for section := range strings.SplitSeq(string(index), "\n## ") {
		rows := pageRow.FindAllStringSubmatch(section, -1)
		if len(rows) == 0 {
			continue
		}
		title, _, _ := strings.Cut(section, "\n")
		fmt.Fprintf(&b, "\n## %s\n\n", title)
		for _, r := range rows {
			fmt.Fprintf(&b, "- [%s](%s%s): %s\n", r[1], pageAddress, r[2], r[3])
		}
	}
	return b.String(), nil
}
