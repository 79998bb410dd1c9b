package lint

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// ignoreComment is a # qtype:ignore comment.
type ignoreComment struct {
	file   *source.File
	line   int
	target int             // the line that it applies to: its own, or the next one with content
	codes  []string        // what it ignores, each once
	used   map[string]bool // the codes that ignored a diagnostic
	text   string          // the comment from the # on
	start  int             // the column of the #, from 1
}

// attempt matches comments that are meant as ignore comments, also misspelled ones.
// Its groups are the name as written and the rest.
var attempt = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`#[ \t]*(qtype[ \t]*:[ \t]*ignore)\b(.*)$`) })

// commentsOf returns the ignore comments of files, and diagnostics for malformed
// ones.
func commentsOf(files []*source.File, known func() []string) (found []*ignoreComment, malformed diag.List) {
	for _, f := range files {
		if !bytes.Contains(f.Text, []byte("qtype")) || isRaw(f) {
			continue
		}
		for _, c := range candidates(f) {
			if len(found) == maxComments {
				malformed.Add(ruleMalformed.At(c.span(), "more than %d qtype:ignore comments; this and all following ones have no effect", maxComments))
				break
			}
			if problem := c.parse(known()); problem != nil {
				malformed.Add(*problem)
				continue
			}
			found = append(found, c)
		}
	}
	return found, malformed
}

// maxComments limits the ignore comments of a document.
const maxComments = 1000

// isRaw reports whether a file is included as text, so that it is not YAML.
func isRaw(f *source.File) bool {
	at := f.From
	if at.File == nil {
		return false
	}
	line := []rune(at.File.Line(at.Start.Line))
	from := min(max(at.Start.Column-1, 0), len(line))
	return strings.HasPrefix(strings.TrimSpace(string(line[from:])), "!include_raw") ||
		strings.Contains(string(line[:from]), "!include_raw")
}

// candidates returns the comments of a file that look like ignore comments.
func candidates(f *source.File) []*ignoreComment {
	lines := strings.Split(string(f.Text), "\n")
	var found []*ignoreComment
	for i, line := range lines {
		line = strings.TrimSuffix(line, "\r")
		if !strings.Contains(line, "qtype") {
			continue
		}
		at := attempt().FindStringIndex(line)
		if at == nil || at[0] > 0 && line[at[0]-1] != ' ' && line[at[0]-1] != '\t' {
			continue
		}
		c := &ignoreComment{file: f, line: i + 1, target: i + 1, used: map[string]bool{}, text: line[at[0]:], start: utf8.RuneCountInString(line[:at[0]]) + 1}
		if strings.TrimSpace(line[:at[0]]) == "" {
			c.target = 0
		}
		found = append(found, c)
		if len(found) > maxComments {
			break
		}
	}
	if len(found) == 0 {
		return nil
	}
	resolveTargets(found, lines)
	return outsideOfTexts(found, lines)
}

// resolveTargets sets the line that comments on lines without content apply to.
func resolveTargets(found []*ignoreComment, lines []string) {
	next := len(lines) // the next line with content, going backwards
	for i, c := len(lines)-1, len(found)-1; c >= 0 && i >= 0; i-- {
		if found[c].line == i+1 {
			if found[c].target == 0 {
				found[c].target = next + 1
			}
			c--
		}
		if text := strings.TrimSpace(lines[i]); text != "" && text[0] != '#' {
			next = i
		}
	}
}

// number matches the mark of a candidate in outsideOfTexts.
var number = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`#⟪(\d+)⟫`) })

// outsideOfTexts removes candidates inside quoted or block strings, where # is no
// comment. It replaces the # of each candidate by a number, and drops a candidate whose
// number is in a scalar of the parsed text: the YAML parser decides.
func outsideOfTexts(found []*ignoreComment, lines []string) []*ignoreComment {
	lines = slices.Clone(lines)
	for i, c := range found {
		before, rest, _ := strings.Cut(lines[c.line-1], c.text)
		lines[c.line-1] = before + fmt.Sprintf("#⟪%d⟫", i) + c.text[1:] + rest
	}
	var tree yaml.Node
	if yaml.Unmarshal([]byte(strings.Join(lines, "\n")), &tree) != nil {
		return nil
	}
	inside := map[int]bool{}
	markInside(&tree, inside)
	kept := make([]*ignoreComment, 0, len(found))
	for i, c := range found {
		if !inside[i] {
			kept = append(kept, c)
		}
	}
	return kept
}

func markInside(n *yaml.Node, inside map[int]bool) {
	if n.Kind == yaml.ScalarNode {
		for _, m := range number().FindAllStringSubmatch(n.Value, -1) {
			i, _ := strconv.Atoi(m[1]) // the pattern matches digits only
			inside[i] = true
		}
	}
	for _, part := range n.Content {
		markInside(part, inside)
	}
}

// code matches a diagnostic code.
var code = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^QT[0-9]{3}$`) })

// parse reads the codes. It returns a diagnostic if the comment is malformed.
func (c *ignoreComment) parse(known []string) *diag.Diagnostic {
	parts := attempt().FindStringSubmatch(c.text)
	list, _, _ := strings.Cut(parts[2], ":")
	words := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	problem := func(format string, args ...any) *diag.Diagnostic {
		d := ruleMalformed.At(c.span(), format, args...).WithHint("write # qtype:ignore QT917, or several codes separated by commas; a reason may follow after a colon")
		return &d
	}
	switch {
	case parts[1] != "qtype:ignore":
		return problem("this comment has no effect: write qtype:ignore, not %q", parts[1])
	case len(words) == 0:
		return problem("qtype:ignore needs a code")
	}
	for _, word := range words {
		switch {
		case !code().MatchString(word):
			return problem("qtype:ignore takes codes; %q is not a code", word)
		case !slices.Contains(known, word):
			d := ruleMalformed.At(c.span(), "qtype:ignore: unknown code %s", word).WithHint("qtype explain lists all codes")
			return &d
		}
		if !slices.Contains(c.codes, word) {
			c.codes = append(c.codes, word)
		}
	}
	return nil
}

// span returns the span of the comment up to the end of its line.
func (c *ignoreComment) span() source.Span {
	end := c.start + utf8.RuneCountInString(strings.TrimRight(c.text, " \t"))
	return source.Span{File: c.file, Start: source.Pos{Line: c.line, Column: c.start}, End: source.Pos{Line: c.line, Column: end}}
}

// unusedDiagnostic reports codes that are not needed. Codes of diagnostics that
// depend on the environment (a variable, a .env file) may be needed on another
// computer.
func (c *ignoreComment) unusedDiagnostic(needed map[string]bool) diag.List {
	var unneeded, kept []string
	for _, code := range c.codes {
		if needed[code] || code == "QT005" || code == "QT011" {
			kept = append(kept, code)
		} else {
			unneeded = append(unneeded, code)
		}
	}
	if len(unneeded) == 0 {
		return nil
	}
	d := ruleUnused.At(c.span(), "qtype:ignore %s has no effect", strings.Join(unneeded, ", ")).WithHint("remove it")
	d.Fixes = []diag.Fix{c.removeFix(kept)}
	return diag.List{d}
}

// removeFix removes the comment, with its line or the spaces before it. If other
// codes are needed, it removes the unneeded codes only.
func (c *ignoreComment) removeFix(kept []string) diag.Fix {
	at := c.span()
	if len(kept) > 0 {
		rest := ""
		if _, reason, found := strings.Cut(strings.TrimPrefix(c.text, "#"), "ignore"); found {
			if _, reason, found = strings.Cut(reason, ":"); found {
				rest = ":" + reason
			}
		}
		return diag.Fix{Span: at, NewText: "# qtype:ignore " + strings.Join(kept, ", ") + strings.TrimRight(rest, " \t")}
	}
	before := []rune(c.file.Line(c.line))[:c.start-1]
	if c.target != c.line {
		at.Start.Column, at.End = 1, source.Pos{Line: c.line + 1, Column: 1}
		return diag.Fix{Span: at}
	}
	at.Start.Column = utf8.RuneCountInString(strings.TrimRight(string(before), " \t")) + 1
	return diag.Fix{Span: at}
}

// codes returns all codes that a comment may name.
func codes() []string {
	rules := Rules()
	all := make([]string, len(rules))
	for i, r := range rules {
		all[i] = r.Code
	}
	return all
}
