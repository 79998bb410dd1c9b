// Package ruletext reads the texts of diagnostic codes. A package that declares codes embeds a folder rules
// with a Markdown file for each: the title as its heading, the reason in paragraphs, and a block `yaml wrong`
// and a block `yaml right` if a document can break the rule.
package ruletext

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec/diag"
)

// Must returns the rules with the texts of rules/CODE.md in files, which the program embeds. It panics as
// regexp.MustCompile does: the first test that asks for the rules fails with all errors.
func Must(files fs.FS, rules ...diag.Rule) []diag.Rule {
	all, err := read(files, rules)
	if err != nil {
		panic(err)
	}
	return all
}

// read returns the rules with their texts, and an error for each file that is missing, malformed or of no rule.
func read(files fs.FS, rules []diag.Rule) ([]diag.Rule, error) {
	var problems []error
	all, used := slices.Clone(rules), map[string]bool{}
	for i := range all {
		name := "rules/" + all[i].Code + ".md"
		used[name] = true
		text, err := fs.ReadFile(files, name)
		if err == nil {
			err = parse(string(text), &all[i])
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	names, err := fs.Glob(files, "rules/*")
	problems = append(problems, err)
	for _, name := range names {
		if !used[name] {
			problems = append(problems, fmt.Errorf("%s: no rule of the package has this code", name))
		}
	}
	return all, errors.Join(problems...)
}

// parse sets the texts of a rule.
func parse(text string, r *diag.Rule) (err error) {
	heading, rest, _ := strings.Cut(text, "\n")
	reason, examples, hasExamples := strings.Cut(rest, "\n```")
	r.Title = strings.TrimPrefix(heading, "# ")
	r.Doc = joinLines(reason)
	switch {
	case r.Title == heading || strings.TrimSpace(r.Title) == "":
		return errors.New("the first line is not a heading: # and the title")
	case r.Doc == "":
		return errors.New("there is no reason after the heading")
	case !hasExamples:
		return nil
	}
	examples = "```" + examples
	if r.Wrong, examples, err = cutExample(examples, "wrong"); err != nil {
		return err
	}
	if r.Right, examples, err = cutExample(examples, "right"); err != nil {
		return err
	}
	if examples != "" {
		return errors.New("there is text after the right example")
	}
	return nil
}

// joinLines joins the lines of each paragraph.
func joinLines(text string) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.ReplaceAll(p, "\n", " ")
	}
	return strings.Join(paragraphs, "\n\n")
}

// cutExample returns the text of the fenced block that text begins with, and what follows it.
func cutExample(text, side string) (example, rest string, err error) {
	fence := text[:len(text)-len(strings.TrimLeft(text, "`"))]
	info, body, _ := strings.Cut(text[len(fence):], "\n")
	if len(fence) < 3 || info != "yaml "+side {
		return "", "", fmt.Errorf("the block ```yaml %s is missing; a wrong example is followed by a right one", side)
	}
	example, rest, closed := strings.Cut("\n"+body, "\n"+fence+"\n")
	if !closed || strings.TrimSpace(example) == "" {
		return "", "", fmt.Errorf("the block ```yaml %s is empty, or does not end with a line %s", side, fence)
	}
	return example[1:] + "\n", strings.TrimLeft(rest, "\n"), nil
}
