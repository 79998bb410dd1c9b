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

// ignoreComment is one # qtype:ignore.
type ignoreComment struct {
	file  *source.File
	line  int             // where it stands
	about int             // the line that it is about: its own, or the next that is no comment
	codes []string        // what it silences, each once
	used  map[string]bool // which of them silenced something
	text  string          // itself, from the # on
	start int             // the column of its #, from 1
}

// attempt matches what somebody meant as a silencing comment; its parts are the
// name as it is written and the rest.
var attempt = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`#[ \t]*(qtype[ \t]*:[ \t]*ignore)\b(.*)$`) })

// commentsOf finds the silencing comments of files, and warns of those that are
// not understood.
func commentsOf(files []*source.File, known func() []string) (found []*ignoreComment, malformed diag.List) {
	for _, f := range files {
		if !bytes.Contains(f.Text, []byte("qtype")) || isRaw(f) {
			continue
		}
		for _, c := range candidates(f) {
			if len(found) == mostComments {
				malformed.Add(ruleMalformed.At(c.span(), "there are more than %d qtype:ignore comments; this and the others are not looked at", mostComments))
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

// mostComments is how many silencing comments a document may have.
const mostComments = 1000

// isRaw tells whether a file was included as text: its lines are no YAML.
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

// candidates are the comments of a file that look like silencing ones.
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
		c := &ignoreComment{file: f, line: i + 1, about: i + 1, used: map[string]bool{}, text: line[at[0]:], start: utf8.RuneCountInString(line[:at[0]]) + 1}
		if strings.TrimSpace(line[:at[0]]) == "" {
			c.about = 0
		}
		found = append(found, c)
		if len(found) > mostComments {
			break
		}
	}
	if len(found) == 0 {
		return nil
	}
	resolveTargets(found, lines)
	return outsideOfTexts(found, lines)
}

// resolveTargets points the comments that have a line of their own at the next line that is
// neither empty nor a comment.
func resolveTargets(found []*ignoreComment, lines []string) {
	next := len(lines) // the index of the next such line, going backwards
	for i, c := len(lines)-1, len(found)-1; c >= 0 && i >= 0; i-- {
		if found[c].line == i+1 {
			if found[c].about == 0 {
				found[c].about = next + 1
			}
			c--
		}
		if text := strings.TrimSpace(lines[i]); text != "" && text[0] != '#' {
			next = i
		}
	}
}

// number is how a candidate is marked for outsideOfTexts.
var number = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`#⟪(\d+)⟫`) })

// outsideOfTexts leaves only real comments: a # inside of a quoted or a block
// text is none. Every candidate gets a number in its place, and those whose
// number turns up in a value of the parsed text are dropped. So the YAML parser
// decides, whatever the quoting.
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
			i, _ := strconv.Atoi(m[1]) // digits, by the pattern
			inside[i] = true
		}
	}
	for _, part := range n.Content {
		markInside(part, inside)
	}
}

// code is the form of a code.
var code = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^QT[0-9]{3}$`) })

// parse reads the codes; the answer tells what is wrong with the comment.
func (c *ignoreComment) parse(known []string) *diag.Diagnostic {
	parts := attempt().FindStringSubmatch(c.text)
	list, _, _ := strings.Cut(parts[2], ":")
	words := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	problem := func(format string, args ...any) *diag.Diagnostic {
		d := ruleMalformed.At(c.span(), format, args...).WithHint("write # qtype:ignore QT905, or several codes with commas; a reason may follow after a colon")
		return &d
	}
	switch {
	case parts[1] != "qtype:ignore":
		return problem("this comment silences nothing: %q is not written qtype:ignore", parts[1])
	case len(words) == 0:
		return problem("qtype:ignore needs the code that it silences")
	}
	for _, word := range words {
		switch {
		case !code().MatchString(word):
			return problem("qtype:ignore takes codes, and %q is none", word)
		case !slices.Contains(known, word):
			d := ruleMalformed.At(c.span(), "qtype:ignore: there is no code %s", word).WithHint("qtype explain lists the codes")
			return &d
		}
		if !slices.Contains(c.codes, word) {
			c.codes = append(c.codes, word)
		}
	}
	return nil
}

// span is the comment's place, up to the end of its line.
func (c *ignoreComment) span() source.Span {
	end := c.start + utf8.RuneCountInString(strings.TrimRight(c.text, " \t"))
	return source.Span{File: c.file, Start: source.Pos{Line: c.line, Column: c.start}, End: source.Pos{Line: c.line, Column: end}}
}

// unusedDiagnostic is the finding for the codes that are not needed. What depends on the
// machine (a variable that is set here, a .env file) may be needed elsewhere.
func (c *ignoreComment) unusedDiagnostic(needed map[string]bool) diag.List {
	var idle, kept []string
	for _, code := range c.codes {
		if needed[code] || code == "QT005" || code == "QT011" {
			kept = append(kept, code)
		} else {
			idle = append(idle, code)
		}
	}
	if len(idle) == 0 {
		return nil
	}
	verb := "silence"
	if len(idle) == 1 {
		verb = "silences"
	}
	finding := ruleUseless.At(c.span(), "qtype:ignore %s %s nothing here", strings.Join(idle, ", "), verb).WithHint("take it out")
	finding.Fixes = []diag.Fix{c.removeFix(kept)}
	return diag.List{finding}
}

// removeFix takes the comment out, with the blanks before it or its line; where
// other codes are needed only the others go.
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
	if c.about != c.line {
		at.Start.Column, at.End = 1, source.Pos{Line: c.line + 1, Column: 1}
		return diag.Fix{Span: at}
	}
	at.Start.Column = utf8.RuneCountInString(strings.TrimRight(string(before), " \t")) + 1
	return diag.Fix{Span: at}
}

// codes are all codes that a comment may name.
func codes() []string {
	rules := Rules()
	all := make([]string, len(rules))
	for i, r := range rules {
		all[i] = r.Code
	}
	return all
}
