// Package diagram draws an application: its flows with their steps in order, the
// variables passed between steps, and the models, memories, tools and other
// resources that the steps use. It writes Mermaid text, SVG, or an HTML page with
// both. The output has no external resources and is the same for the same document.
//
// What is drawn follows from the structs and tags of package spec: a new type of
// step or section is drawn without code here. Secrets are never drawn.
package diagram

import (
	"errors"
	"fmt"
	"io"

	"github.com/qtype-dev/qtype/spec"
)

// Format is an output format.
type Format string

// The formats.
const (
	Mermaid Format = "mermaid" // a flowchart for Markdown pages
	SVG     Format = "svg"     // a picture that adapts to light and dark screens
	HTML    Format = "html"    // a page with the picture and the Mermaid text
)

// errNoApplication is returned for a document that is a list.
var errNoApplication = errors.New("only an application can be drawn; this document is a list of components")

// Write writes the diagram of a document that is free of errors.
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
		text = htmlPage(g)
	default:
		return fmt.Errorf("a diagram cannot be written as %q", format)
	}
	_, err := io.WriteString(w, text)
	return err
}
