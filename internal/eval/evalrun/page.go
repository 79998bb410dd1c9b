package evalrun

import (
	"crypto/sha256"
	_ "embed" // the template is part of the program
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
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

// Page is a report as one HTML file.
type Page struct {
	*Report

	Earlier     []*Report    // earlier evaluations, for the trend, the last one at the end; its answers are compared
	Annotations []Annotation // what people have said of results
	Token       string       // with which the page saves annotations on its server; empty for a page that lets its reader download them
}

// HTML writes the report as one page without links to other files.
func (r *Report) HTML(w io.Writer) error {
	p := &Page{Report: r}
	if r.before != nil {
		p.Earlier = []*Report{r.before}
	}
	return p.Write(w)
}

// Policy returns the content security policy of the page: its own style and script are the only ones, and with a token it sends requests to its server.
func (p *Page) Policy() string {
	policy := fmt.Sprintf("default-src 'none'; style-src %s; script-src %s", sourceOf(pageStyle), sourceOf(pageScript))
	if p.Token != "" {
		policy += "; connect-src 'self'"
	}
	return policy
}

// Write writes the page: the summary first, which is painted before the rows are read, and the rows in parts that its script reads when they are shown.
func (p *Page) Write(w io.Writer) error {
	r := p.Report
	style := template.HTML("<style>" + pageStyle + "</style>") //nolint:gosec // an embedded file
	t, err := template.New("report").Funcs(template.FuncMap{
		"style":  func() template.HTML { return style },
		"cell":   func(m MetricReport, v VariantReport) string { return m.cell(v.Metrics[m.ID]) },
		"change": func(c Change) string { return c.verdict() },
		"value":  func(metric string, v float64) string { return formatValue(r.unit(metric), v) },
		"diff":   r.difference, "verdict": r.verdict, "money": money,
		"thousands": thousands,
	}).Parse(page)
	if err != nil {
		return err
	}
	if err := t.Execute(w, p); err != nil {
		return err
	}
	return p.writeRows(w)
}

// writeRows writes the rows and the script. JSON of encoding/json ends no element: it has no "<".
func (p *Page) writeRows(w io.Writer) error {
	var earlier *Report
	index := &pageIndex{App: p.App, Texts: p.Texts, Labels: p.labels(), Token: p.Token, Saved: p.Annotations, Columns: annotationColumns(), Chunk: chunkRows}
	if n := len(p.Earlier); n > 0 {
		earlier = p.Earlier[n-1]
		index.Before = earlier.name()
	}
	for _, v := range p.Variants {
		index.Variants = append(index.Variants, v.ID)
	}
	index.Metrics = p.metricIDs()
	rows := newMatrix(p.Report, earlier).rows()
	for _, r := range rows {
		index.Numbers, index.Apart, index.Flags = append(index.Numbers, r.Row), append(index.Apart, r.apart), append(index.Flags, r.flags)
	}
	data := func(id string, v any) error {
		text, err := json.Marshal(v)
		if err == nil {
			_, err = fmt.Fprintf(w, "<script type=\"application/json\" id=\"%s\">%s</script>\n", id, text)
		}
		return err
	}
	if err := data("index", index); err != nil {
		return err
	}
	for n, part := range slices.Collect(slices.Chunk(rows, chunkRows)) {
		if err := data(fmt.Sprintf("rows-%d", n), part); err != nil {
			return err
		}
		if n == 0 { // it shows the first rows before the others are read
			if _, err := fmt.Fprintf(w, "<script>%s</script>\n", pageScript); err != nil {
				return err
			}
		}
	}
	_, err := io.WriteString(w, "</body>\n</html>\n")
	return err
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
