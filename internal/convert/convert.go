// Package convert converts files of other systems to QType documents. The core converts OpenAPI files and Python
// modules; package systems has the other kinds.
//
// Each kind has a package, such as openapi and pymodule. They read a file with
// package input, which keeps positions and collects diagnostics, and build the
// result with package document. Python itself parses modules, and does not run them.
//
// An error means that the document behaves differently from the file, or that a
// part of the file could not be read; a placeholder takes the place of that part.
// A warning does not change the answers of the application.
package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/internal/convert/openapi"
	"github.com/qtype-dev/qtype/internal/convert/pymodule"
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// Kind is the system whose file is converted.
type Kind string

// The kinds of files.
const (
	AIRefinery  Kind = "airefinery"   // a project file of AI Refinery, or its memory_config alone
	XFlow       Kind = "xflow"        // a workflow of xFlow, a list of its states, or one memory block
	PromptFlow  Kind = "promptflow"   // a flow.dag.yaml of prompt flow, or a Prompty file
	LangChain4j Kind = "langchain4j"  // a Java file, or an application.properties file, of a program with LangChain4j
	LangGraph   Kind = "langgraph"    // a Python file of a program with LangGraph, or a langgraph.json
	API         Kind = "api"          // an OpenAPI 3 or Swagger 2 file
	Module      Kind = "module"       // the source of a Python module
	PromptFoo   Kind = "promptfoo"    // a promptfooconfig.yaml
	OpenAIEvals Kind = "openai-evals" // an eval of the Evals API, or of the registry of OpenAI Evals
)

// Kinds lists the kinds that File converts.
func Kinds() []Kind {
	return []Kind{AIRefinery, XFlow, PromptFlow, LangChain4j, LangGraph, PromptFoo, OpenAIEvals, API, Module}
}

// Rules lists the diagnostic codes of the converters in order.
func Rules() []diag.Rule { return input.Rules() }

// File converts a file to the text of a document. The text is empty if the file
// cannot be converted at all. The list holds the diagnostics in file order. The
// result is deterministic.
func File(ctx context.Context, kind Kind, path string) (string, diag.List) {
	return load(ctx, kind, path, loader.Options{})
}

// Files is like File for a kind whose result has several files: it also returns the evaluation and its rows, nil for none.
func Files(ctx context.Context, kind Kind, path string) (string, *document.Evaluation, diag.List) {
	app, list := loadApp(ctx, kind, path, loader.Options{})
	if app == nil {
		return "", nil, list
	}
	return app.YAML(), app.Evaluation, list
}

// Reader is like File for the content of in; name replaces the path in messages.
func Reader(ctx context.Context, kind Kind, name string, in io.Reader) (string, diag.List) {
	return load(ctx, kind, name, loader.Options{Open: func(context.Context, string) (io.ReadCloser, error) { return io.NopCloser(in), nil }})
}

// Converter converts the file of a kind. The document is nil if the file cannot be converted at all.
type Converter func(ctx context.Context, in Input) (*document.App, diag.List)

// Converters are the converters of a program.
type Converters map[Kind]Converter

// Core returns the table of the converters of the core. The caller may add others.
func Core() Converters { return Converters{API: convertAPI, Module: convertModule} }

type convertersKey struct{}

// With returns a context in which File and Reader have the converters of a table; a nil table is that of
// the core.
func With(ctx context.Context, table Converters) context.Context {
	return context.WithValue(ctx, convertersKey{}, table)
}

// From returns the converters of a context; those of the core without With.
func From(ctx context.Context) Converters {
	if table, _ := ctx.Value(convertersKey{}).(Converters); table != nil {
		return table
	}
	return Core()
}

func load(ctx context.Context, kind Kind, path string, opts loader.Options) (string, diag.List) {
	app, list := loadApp(ctx, kind, path, opts)
	if app == nil {
		return "", list
	}
	return app.YAML(), list
}

func loadApp(ctx context.Context, kind Kind, path string, opts loader.Options) (*document.App, diag.List) {
	convert, found := From(ctx)[kind]
	if !found {
		missing := &parts.MissingError{Kind: parts.Converter, Name: string(kind)}
		return nil, diag.List{input.Malformed.At(source.Span{File: &source.File{Path: path}}, "%s", missing)}
	}
	app, list := convert(ctx, Input{Path: path, Options: opts})
	if app == nil {
		return nil, list
	}
	app.Comments = append([]string{fmt.Sprintf("Made by qtype convert %s from %s.", kind, baseName(path))}, app.Comments...)
	return app, list
}

// Input is the file that is converted.
type Input struct {
	Path    string         // the file, or the name of what Options.Open reads
	Options loader.Options // Open is nil for a file
}

// maxFile is the maximum size of a converted file in bytes: the largest OpenAPI files
// that are in use have 13 MiB.
const maxFile = 64 << 20

// Tree reads the file as YAML or JSON. The node is nil if it cannot be read; the report has the errors.
func (in Input) Tree(ctx context.Context) (*input.Report, *input.Node) {
	in.Options.Limits.FileBytes, in.Options.Limits.TotalBytes = maxFile, maxFile
	value, _, list := loader.LoadValue(ctx, in.Path, in.Options)
	r := input.NewReport(list)
	if value == nil {
		return r, nil
	}
	return r, input.FromValue(value)
}

// Text returns the text of a file that this one names: one below its folder, of which links do not lead
// out either.
func (in Input) Text(ctx context.Context, name string) (*source.File, error) {
	at, err := in.beside(name)
	if err != nil {
		return nil, err
	}
	file, list := loader.LoadText(ctx, at, in.Options)
	if len(list) > 0 {
		return nil, errors.New(list[0].Message)
	}
	return file, nil
}

// Value reads a file that this one names as YAML, JSON or JSON lines, which become a list.
func (in Input) Value(ctx context.Context, name string) (*input.Node, error) {
	at, err := in.beside(name)
	if err != nil {
		return nil, err
	}
	in.Options.Limits.FileBytes, in.Options.Limits.TotalBytes = maxFile, maxFile
	if strings.EqualFold(filepath.Ext(name), ".jsonl") {
		return in.lines(ctx, at)
	}
	value, _, list := loader.LoadValue(ctx, at, in.Options)
	if value == nil {
		return nil, errors.New(list[0].Message)
	}
	return input.FromValue(value), nil
}

// lines reads a file with a JSON value in each line.
func (in Input) lines(ctx context.Context, at string) (*input.Node, error) {
	file, list := loader.LoadText(ctx, at, in.Options)
	if len(list) > 0 {
		return nil, errors.New(list[0].Message)
	}
	all := &input.Node{Kind: input.List, Span: input.Bytes(file, 0, 0)}
	n := 0
	for line := range strings.Lines(string(file.Text)) {
		n++
		if strings.TrimSpace(line) == "" {
			continue
		}
		opts := in.Options
		opts.Open = func(context.Context, string) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(strings.Repeat("\n", n-1) + line)), nil // the positions are those in the file
		}
		value, _, list := loader.LoadValue(ctx, at, opts)
		if value == nil {
			return nil, fmt.Errorf("line %d: %s", n, list[0].Message)
		}
		all.Items = append(all.Items, input.FromValue(value))
	}
	return all, nil
}

// Within returns the input with the folder above as that from which other files are named, if the file is in a folder of that name.
func (in Input) Within(folder string) Input {
	if dir := filepath.Dir(in.Path); in.Options.Open == nil && filepath.Base(dir) == folder {
		in.Path = filepath.Join(filepath.Dir(dir), filepath.Base(in.Path))
	}
	return in
}

// beside returns the path of a file that this one names.
func (in Input) beside(name string) (string, error) {
	if in.Options.Open != nil {
		return "", errors.New("standard input has no folder: give the name of the file")
	}
	folder := filepath.Dir(in.Path)
	at := filepath.Join(folder, filepath.FromSlash(name))
	if !trust.IsBelow(folder, at) {
		return "", errors.New("a link leads out of the folder of the file")
	}
	return at, nil
}

// Module returns the name of the Python module of the file.
func (in Input) Module() string {
	if in.Options.Open != nil { // the text has no place among modules
		return "module"
	}
	return pymodule.PathOf(in.Path)
}

// convertAPI converts an OpenAPI file.
func convertAPI(ctx context.Context, in Input) (*document.App, diag.List) {
	r, root := in.Tree(ctx)
	if root == nil {
		return nil, r.Diagnostics()
	}
	name := baseName(in.Path)
	app, err := openapi.Convert(r, root, strings.TrimSuffix(name, filepath.Ext(name)), in.references(ctx))
	if err != nil {
		r.Malformed(root, "%s", err)
	}
	return app, r.Diagnostics()
}

// references returns a function that reads the files that an OpenAPI file refers to; nil for standard input.
func (in Input) references(ctx context.Context) openapi.Read {
	if in.Options.Open != nil {
		return nil
	}
	in.Options.Limits.FileBytes, in.Options.Limits.TotalBytes = maxFile, maxFile
	return func(name string) (*input.Node, error) {
		at, err := in.beside(name)
		if err != nil {
			return nil, err
		}
		value, _, list := loader.LoadValue(ctx, at, in.Options)
		if value == nil {
			return nil, errors.New(list[0].Message)
		}
		return input.FromValue(value), nil
	}
}

// convertModule converts the source of a Python module, which may be named by its dotted name.
func convertModule(ctx context.Context, in Input) (*document.App, diag.List) {
	name := in.Path
	if in.Options.Open == nil {
		in.Path = moduleFile(in.Path)
	}
	if in.Path == name {
		name = in.Module()
	}
	file, list := loader.LoadText(ctx, in.Path, in.Options)
	if list != nil {
		return nil, list
	}
	r := input.NewReport(nil)
	malformed := func(err error) (*document.App, diag.List) {
		r.Add(input.Malformed.At(input.Bytes(file, 0, 1), "%s", err))
		return nil, r.Diagnostics()
	}
	python, err := pymodule.Interpreter()
	if err != nil {
		return malformed(err)
	}
	app, err := pymodule.Convert(ctx, r, python, name, file)
	if err != nil {
		return malformed(err)
	}
	return app, r.Diagnostics()
}

// moduleFile returns the file of a module by its dotted name, or the path itself if there is none.
func moduleFile(name string) string {
	if _, err := os.Stat(name); err == nil || !pymodule.IsPath(name) {
		return name
	}
	at := filepath.FromSlash(strings.ReplaceAll(name, ".", "/"))
	for _, path := range []string{at + ".py", filepath.Join(at, "__init__.py")} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return name
}

// baseName returns the last element of a path with slashes or backslashes.
func baseName(path string) string {
	return path[strings.LastIndexAny(path, `/\`)+1:]
}
