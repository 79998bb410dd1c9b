// Package convert makes documents of the files of other systems: AI Refinery's
// project files and xFlow's workflows. What it writes is checked and run like any
// other document; what it cannot say in the language it tells with its place.
//
// Two severities tell how much was lost. An error means that the document does
// something else than the file did, or that a part of it could not be read: it is
// still written, with what stands in for the part. A warning is about something
// that does not change what is answered.
package convert

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// Kind is whose file is converted.
type Kind string

// The kinds of files.
const (
	AIRefinery Kind = "airefinery" // a project file of AI Refinery, or its memory_config alone
	XFlow      Kind = "xflow"      // a workflow of xFlow, a list of its states, or one memory block
)

// Kinds lists the kinds that File converts.
func Kinds() []Kind { return []Kind{AIRefinery, XFlow} }

// File converts a file to the text of a document. The text is empty where
// nothing could be made of the file; the list holds what was wrong or is lost, in
// file order. The same file always gives the same text.
func File(ctx context.Context, kind Kind, path string) (string, diag.List) {
	return load(ctx, kind, path, loader.Options{})
}

// Reader is File for what a reader gives; name stands for it in messages.
func Reader(ctx context.Context, kind Kind, name string, in io.Reader) (string, diag.List) {
	return load(ctx, kind, name, loader.Options{Open: func(context.Context, string) (io.ReadCloser, error) { return io.NopCloser(in), nil }})
}

func load(ctx context.Context, kind Kind, path string, opts loader.Options) (string, diag.List) {
	value, file, faults := loader.LoadValue(ctx, path, opts)
	r := &report{list: faults, seen: map[string]bool{}}
	if value == nil {
		return "", r.sorted()
	}
	var app *application
	root := fromPlain(value, map[*loader.Value]*node{})
	if kind == AIRefinery {
		app = airefinery(r, root)
	} else {
		app = xflow(r, root)
	}
	if app == nil {
		return "", r.sorted()
	}
	app.head = append([]string{fmt.Sprintf("Made by qtype convert %s from %s.", kind, baseName(file.Path))}, app.head...)
	return app.text(), r.sorted()
}

// baseName is the name of a file without its folders, whichever way they are written.
func baseName(path string) string {
	return path[strings.LastIndexAny(path, `/\`)+1:]
}

// report collects what is told about a file.
type report struct {
	list diag.List
	mute bool            // a first look at expressions: what is wrong is told by the second
	seen map[string]bool // what was told already: an alias stands at several places
}

// add tells of something, once.
func (r *report) add(d diag.Diagnostic) {
	key := d.Span.String() + "\x00" + d.Message
	if r.mute || r.seen[key] {
		return
	}
	r.seen[key] = true
	r.list.Add(d)
}

// malformed tells of a value that is not what the other system takes.
func (r *report) malformed(n *node, format string, args ...any) {
	r.add(ruleForm.At(n.mark(), format, args...))
}

// unsupported tells of something that changes what the document does.
func (r *report) unsupported(n *node, format string, args ...any) {
	r.add(ruleUnsupported.At(n.mark(), format, args...))
}

// ignored tells of something without effect on the answers.
func (r *report) ignored(at source.Span, format string, args ...any) {
	r.add(ruleDropped.At(at, format, args...))
}

// assumed tells of something that the file left open.
func (r *report) assumed(n *node, format string, args ...any) {
	r.add(ruleChosen.At(n.mark(), format, args...))
}

func (r *report) sorted() diag.List {
	r.list.Sort()
	return r.list
}
