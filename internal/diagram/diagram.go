// Package diagram draws an application: its flows with their steps in order, the
// data that goes from step to step, and the models, memories, tools and other
// things that the steps use. It writes Mermaid text, SVG, and a page of HTML that
// shows both, all by itself and always the same for the same document.
//
// What is drawn comes from the structs of package spec: a step type or a section
// that is new there is drawn like the others. Secrets are never drawn.
package diagram

import (
	"errors"
	"fmt"
	"io"

	"github.com/qtype-dev/qtype/spec"
)

// Format is a form in which a diagram is written.
type Format string

// The formats.
const (
	Mermaid Format = "mermaid" // a flowchart for Markdown pages
	SVG     Format = "svg"     // a picture, light or dark as its reader's screen is
	HTML    Format = "html"    // a page with the picture and the Mermaid text
)

// errNoApplication says that there is nothing to draw.
var errNoApplication = errors.New("only an application can be drawn; this document is a list of components")

// Write draws a document that was checked without errors.
func Write(w io.Writer, doc *spec.Document, format Format) error {
	if doc.Application == nil {
		return errNoApplication
	}
	g := graphOf(doc.Application)
	var text string
	switch format {
	case Mermaid:
		text = mermaid(g)
	case SVG:
		text = svg(g)
	case HTML:
		text = page(g)
	default:
		return fmt.Errorf("a diagram cannot be written as %q", format)
	}
	_, err := io.WriteString(w, text)
	return err
}
