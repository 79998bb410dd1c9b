package main

import (
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate/lint"
)

// families are the rules' numbers in words.
var families = []struct{ prefix, title, text string }{
	{"QT0", "Reading", "The file itself, what it includes, and what its comments silence."},
	{"QT1", "Form", "Keys and the kind of value that each takes."},
	{"QT2", "Ids and references", "What is named must be there, once."},
	{"QT3", "Meaning", "What the parts mean together, as QType (Python) has it."},
	{"QT4", "Meaning, beyond QType", "The same for what this project adds to the language."},
	{"QT9", "Doubts", "The document works, but something in it is probably not meant."},
}

// rulesPage is the manual's page of all rules.
func rulesPage() (string, error) {
	var b strings.Builder
	rules := lint.Rules()
	fmt.Fprintf(&b, `# Rules

<!-- Made by make generate from the rules themselves; changes here are lost. -->

Every finding of `+"`qtype validate`"+` has a code. These are all %d of them, each with
a document that breaks the rule and the same one mended; `+"`qtype explain QT202`"+`
prints the same. Errors make a document unusable; warnings fail only with
`+"`--strict`"+`. A comment `+"`# qtype:ignore QT905`"+` at the end of a line, or on a line of
its own above it, silences that code there.
`, len(rules))
	for _, family := range families {
		members := membersOf(rules, family.prefix)
		if len(members) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| Code | | What is wrong |\n| --- | --- | --- |\n", family.title, family.text)
		for _, r := range members {
			fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", r.Code, strings.ToLower(r.Code), r.Severity, cell(r.Title))
		}
		for _, r := range members {
			writeRule(&b, r)
		}
	}
	return b.String(), nil
}

func membersOf(rules []diag.Rule, prefix string) []diag.Rule {
	var members []diag.Rule
	for _, r := range rules {
		if strings.HasPrefix(r.Code, prefix) {
			members = append(members, r)
		}
	}
	return members
}

func writeRule(b *strings.Builder, r diag.Rule) {
	fmt.Fprintf(b, "\n### %s\n\n**%s** (%s). %s\n", r.Code, escaped(r.Title), r.Severity, escaped(strings.TrimSpace(r.Doc)))
	for _, example := range []struct{ name, text string }{{"Wrong", r.Wrong}, {"Right", r.Right}} {
		if text := strings.Trim(example.text, "\n"); text != "" {
			fmt.Fprintf(b, "\n%s:\n\n%s", example.name, fenced("yaml qtype:ignore", text))
		}
	}
}

// fenced puts text into a fence that nothing in it can close.
func fenced(info, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + info + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n"
}

// escaped keeps Markdown from reading anything into a plain text.
func escaped(text string) string {
	return strings.NewReplacer("\\", `\\`, "*", `\*`, "_", `\_`, "<", "&lt;", "[", `\[`, "`", "\\`").Replace(text)
}

// cell is plain text in a cell of a table.
func cell(text string) string { return strings.ReplaceAll(escaped(text), "|", `\|`) }
