// Package convert converts the files of other systems to QType documents: AI
// Refinery project files and xFlow workflows.
//
// Each system has a package: airefinery and xflow. They read a file with
// package input, which keeps positions and collects diagnostics, and build the
// result with package document. Package jq translates the expressions of xFlow.
//
// An error means that the document behaves differently from the file, or that a
// part of the file could not be read; a placeholder takes the place of that part.
// A warning does not change the answers of the application.
package convert

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/airefinery"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/internal/convert/xflow"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
)

// Kind is the system whose file is converted.
type Kind string

// The kinds of files.
const (
	AIRefinery Kind = "airefinery" // a project file of AI Refinery, or its memory_config alone
	XFlow      Kind = "xflow"      // a workflow of xFlow, a list of its states, or one memory block
)

// Kinds lists the kinds that File converts.
func Kinds() []Kind { return []Kind{AIRefinery, XFlow} }

// Rules lists the diagnostic codes of the converters in order.
func Rules() []diag.Rule { return input.Rules() }

// File converts a file to the text of a document. The text is empty if the file
// cannot be converted at all. The list holds the diagnostics in file order. The
// result is deterministic.
func File(ctx context.Context, kind Kind, path string) (string, diag.List) {
	return load(ctx, kind, path, loader.Options{})
}

// Reader is like File for the content of in; name replaces the path in messages.
func Reader(ctx context.Context, kind Kind, name string, in io.Reader) (string, diag.List) {
	return load(ctx, kind, name, loader.Options{Open: func(context.Context, string) (io.ReadCloser, error) { return io.NopCloser(in), nil }})
}

func load(ctx context.Context, kind Kind, path string, opts loader.Options) (string, diag.List) {
	value, file, list := loader.LoadValue(ctx, path, opts)
	r := input.NewReport(list)
	if value == nil {
		return "", r.Diagnostics()
	}
	var app *document.App
	root := input.FromValue(value)
	if kind == AIRefinery {
		app = airefinery.Convert(r, root)
	} else {
		app = xflow.Convert(r, root)
	}
	if app == nil {
		return "", r.Diagnostics()
	}
	app.Comments = append([]string{fmt.Sprintf("Made by qtype convert %s from %s.", kind, baseName(file.Path))}, app.Comments...)
	return app.YAML(), r.Diagnostics()
}

// baseName returns the last element of a path with slashes or backslashes.
func baseName(path string) string {
	return path[strings.LastIndexAny(path, `/\`)+1:]
}
