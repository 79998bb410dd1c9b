package evalrun

import (
	"crypto/sha256"
	_ "embed" // the template is part of the program
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/chat"
)

//go:embed report.html
var page string

//go:embed report.css
var pageStyle string

//go:embed report.js
var pageScript string

// HTML writes the report as one page without links to other files. Its own style and
// script are the only ones that its content security policy allows.
func (r *Report) HTML(w io.Writer) error {
	element := func(name, content string) func() template.HTML {
		return func() template.HTML { return template.HTML("<" + name + ">" + content + "</" + name + ">") } //nolint:gosec // an embedded file
	}
	t, err := template.New("report").Funcs(template.FuncMap{
		"policy": func() string {
			return fmt.Sprintf("default-src 'none'; style-src %s; script-src %s", sourceOf(pageStyle), sourceOf(pageScript))
		},
		"style": element("style", pageStyle), "script": element("script", pageScript),
		"cell":   func(m MetricReport, v VariantReport) string { return m.cell(v.Metrics[m.ID]) },
		"score":  scoreCell,
		"failed": r.failed,
		"change": func(c Change) string { return c.verdict() },
		"value":  func(metric string, v float64) string { return formatValue(r.unit(metric), v) },
		"diff":   r.difference, "verdict": r.verdict, "money": money,
		"shown": shownText, "thousands": thousands,
	}).Parse(page)
	if err != nil {
		return err
	}
	return t.Execute(w, r)
}

// sourceOf returns the source expression of a content security policy for an element.
func sourceOf(content string) string {
	h := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(h[:]) + "'"
}

func thousands(n any) string {
	switch n := n.(type) {
	case int:
		return textfmt.Thousands(n)
	case int64:
		return textfmt.Thousands(n)
	}
	return fmt.Sprint(n)
}

// pageScore is the score of a result as the page shows it.
type pageScore struct {
	Text, Reason string
	Class        string // pass, fail or number
}

// scoreCell returns the score of a result.
func scoreCell(m MetricReport, result *Result) pageScore {
	s := result.Scores[m.ID]
	switch {
	case s == nil:
		return pageScore{}
	case s.Error != "":
		return pageScore{"no value", s.Error, "fail"}
	case m.Rate && s.Value == 1:
		return pageScore{"pass", s.Reason, "pass"}
	case m.Rate:
		return pageScore{"fail", s.Reason, "fail"}
	}
	return pageScore{formatValue(m.Unit, s.Value), s.Reason, "number"}
}

// pageText is a value as the page shows it.
type pageText struct {
	Text  string
	Start string // of a long text, which is folded; empty for a short one
}

// Longer texts are folded.
const (
	maxShown = 600 // characters
	maxLines = 12
)

// shownText returns a value as a text, with the start of a long one.
func shownText(raw json.RawMessage) pageText {
	text := readableText(raw)
	start := text
	if lines := strings.SplitAfterN(text, "\n", maxLines+1); len(lines) > maxLines {
		start = strings.Join(lines[:maxLines], "")
	}
	if start = textfmt.Ellipsis(start, maxShown); start == text {
		return pageText{Text: text}
	}
	return pageText{text, strings.TrimSuffix(strings.TrimRight(start, "\n"), "…") + "…"}
}

// readableText returns a JSON value as it reads: a text as it is, a message as its text, and
// lists and objects as YAML, in which texts have no escapes.
func readableText(raw json.RawMessage) string {
	if string(raw) == "null" {
		return "(no value)"
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var message chat.Message
	if json.Unmarshal(raw, &message) == nil {
		return messageText(message)
	}
	var messages []chat.Message
	if json.Unmarshal(raw, &messages) == nil && len(messages) > 0 {
		lines := make([]string, len(messages))
		for i, m := range messages {
			lines[i] = string(m.Role) + ": " + messageText(m)
		}
		return strings.Join(lines, "\n")
	}
	var node yaml.Node
	if yaml.Unmarshal(raw, &node) != nil {
		return string(raw)
	}
	asBlocks(&node)
	var b strings.Builder
	out := yaml.NewEncoder(&b)
	out.SetIndent(2)
	if out.Encode(&node) != nil || out.Close() != nil {
		return string(raw)
	}
	return strings.TrimRight(b.String(), "\n")
}

// messageText returns the text of a message, with a note for each part that is no text.
func messageText(m chat.Message) string {
	var parts []string
	for _, b := range m.Blocks {
		switch {
		case b.IsText():
			parts = append(parts, b.Text)
		case b.Call != nil:
			parts = append(parts, fmt.Sprintf("[call of %s: %s]", b.Call.Name, b.Call.Arguments))
		case !b.IsModels():
			parts = append(parts, fmt.Sprintf("[%s]", b.Type))
		}
	}
	return strings.Join(parts, "\n")
}

// asBlocks gives nodes that were read from JSON the styles of YAML.
func asBlocks(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "\n") {
		n.Style = yaml.LiteralStyle
	}
	for _, inner := range n.Content {
		asBlocks(inner)
	}
}
