package traceview

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"sync"

	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

//go:embed page.css
var pageStyle string

//go:embed page.html
var pageText string

// pageTemplates write the page. html/template escapes all texts of rows.
var pageTemplates = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Parse(pageText)) })

// maxPageText is the number of bytes of one text on the page; JSON lines have all.
const maxPageText = 256 << 10

// page writes an HTML page without scripts, row by row. Only its own style is allowed by
// its content security policy.
type page struct {
	out          *bufio.Writer
	unit         string
	rows, failed int
	sum          totals
}

func newPage(out *bufio.Writer, o Options) (output, error) {
	h := sha256.Sum256([]byte(pageStyle))
	p := &page{out: out, unit: o.Unit}
	head := struct {
		Title, Unit, Policy string
		Style               template.HTML
	}{o.Title, o.Unit, "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(h[:]) + "'",
		template.HTML("<style>" + pageStyle + "</style>")} //nolint:gosec // the embedded file
	if err := pageTemplates().ExecuteTemplate(out, "head", head); err != nil {
		return nil, err
	}
	return p, out.Flush()
}

// pageEntry is an entry of the page.
type pageEntry struct {
	Kind, Title string
	Notes       []string
	Error       string
	Blocks      []pageBlock
	Left, Width string // of its time within that of the row, in percent
	Children    []pageEntry
}

// pageBlock is a text of an entry.
type pageBlock struct{ Label, Text string }

func (p *page) row(r *telemetry.RowSpans) error {
	roots := entries(r.Spans)
	title, whole := heading(p.unit, r, roots)
	if whole && len(r.Spans) == 1 && !roots[0].failed() { // its rows were written
		return nil
	}
	sum := totalsOf(r.Spans, roots)
	data := struct {
		Title    string
		Notes    []string
		Failed   bool
		Children []pageEntry
	}{title, sum.notes(), sum.failed, nil}
	for _, e := range roots {
		data.Children = append(data.Children, p.entry(e, &sum))
	}
	p.rows++
	if sum.failed {
		p.failed++
	}
	p.sum.tokens.Input += sum.tokens.Input
	p.sum.tokens.Output += sum.tokens.Output
	p.sum.tokens.Cached += sum.tokens.Cached
	p.sum.cost += sum.cost
	if err := pageTemplates().ExecuteTemplate(p.out, "row", data); err != nil {
		return err
	}
	return p.out.Flush()
}

// entry returns an entry with those within it; sum has the times of the row.
func (p *page) entry(e *entry, sum *totals) pageEntry {
	out := pageEntry{Kind: e.span.Kind, Title: e.title, Notes: e.notes, Error: e.span.Error}
	if whole := sum.end.Sub(sum.start); whole > 0 && e.span.End != nil {
		out.Left = fmt.Sprintf("%.2f", 100*float64(e.span.Start.Sub(sum.start))/float64(whole))
		out.Width = fmt.Sprintf("%.2f", max(0.3, 100*float64(e.span.End.Sub(e.span.Start))/float64(whole)))
	}
	for _, b := range e.blocks {
		text := b.text
		if len(text) > maxPageText {
			end := textfmt.Boundary(text, maxPageText)
			text = fmt.Sprintf("%s\n… %s more", text[:end], textfmt.Bytes(int64(len(text)-end)))
		}
		out.Blocks = append(out.Blocks, pageBlock{b.label, text})
	}
	for _, c := range e.children {
		out.Children = append(out.Children, p.entry(c, sum))
	}
	return out
}

func (p *page) close() error {
	notes := append([]string{textfmt.Count(p.rows, p.unit)}, p.sum.notes()...)
	if p.failed > 0 {
		notes = append(notes, fmt.Sprintf("%s failed", textfmt.Thousands(p.failed)))
	}
	if err := pageTemplates().ExecuteTemplate(p.out, "foot", notes); err != nil {
		return err
	}
	return p.out.Flush()
}
