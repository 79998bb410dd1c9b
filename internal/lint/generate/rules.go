package main

import (
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/spec/diag"
)

// families are the ranges of codes.
var families = []struct{ prefix, title, text string }{
	{"QT0", "Reading", "The file, its includes, and its ignore comments."},
	{"QT1", "Form", "Keys and the types of their values."},
	{"QT2", "Ids and references", "Ids are unique, and references lead to an existing entity."},
	{"QT3", "Meaning", "Consistency of the parts of a document, as in QType (Python)."},
	{"QT4", "Meaning, beyond QType", "The same for this project's additions to the language."},
	{"QT5", "Retrieval", "Readers, splitters, indexes and rerankers."},
	{"QT6", "Models", "What the catalogue knows of the models of a document: `qtype models`."},
	{"QT9", "Warnings", "The document works but is probably not what was intended."},
}

// rulesPage lists all rules.
func rulesPage() string {
	var b strings.Builder
	rules := lint.Rules()
	fmt.Fprintf(&b, `# Rules

<!-- Generated from the rules by make generate. DO NOT EDIT. -->

Every diagnostic of `+"`qtype validate`"+` has a code. Each of the %d codes has a document
that breaks the rule and a corrected one; `+"`qtype explain QT202`"+` prints the same.
Errors make a document unusable; warnings fail only with `+"`--strict`"+`. A comment
`+"`# qtype:ignore QT917`"+` at the end of a line, or on a separate line above it, ignores
that code there.
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
	return b.String()
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

// fenced returns text in a fence that is longer than any in it.
func fenced(info, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + info + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n"
}

// escaped escapes Markdown.
func escaped(text string) string {
	return strings.NewReplacer("\\", `\\`, "*", `\*`, "_", `\_`, "<", "&lt;", "[", `\[`, "`", "\\`").Replace(text)
}

// cell escapes text for a table cell.
func cell(text string) string { return strings.ReplaceAll(escaped(text), "|", `\|`) }
