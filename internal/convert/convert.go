// Package convert converts the files of other systems to QType documents: AI
// Refinery project files, xFlow workflows, flows of prompt flow, programs that use LangChain4j or
// LangGraph, OpenAPI files and Python modules.
//
// Each has a package: airefinery, xflow, promptflow, langchain4j, langgraph, openapi and pymodule. They read a file with
// package input, which keeps positions and collects diagnostics, and build the
// result with package document. Package code reads parts of programs in Java and Python, assistant builds
// documents of them. Package jq translates the expressions of xFlow; Python
// itself parses modules, and does not run them.
//
// An error means that the document behaves differently from the file, or that a
// part of the file could not be read; a placeholder takes the place of that part.
// A warning does not change the answers of the application.
package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/convert/airefinery"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/internal/convert/langchain4j"
	"github.com/qtype-dev/qtype/internal/convert/langgraph"
	"github.com/qtype-dev/qtype/internal/convert/openapi"
	"github.com/qtype-dev/qtype/internal/convert/promptflow"
	"github.com/qtype-dev/qtype/internal/convert/pymodule"
	"github.com/qtype-dev/qtype/internal/convert/xflow"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// Kind is the system whose file is converted.
type Kind string

// The kinds of files.
const (
	AIRefinery  Kind = "airefinery"  // a project file of AI Refinery, or its memory_config alone
	XFlow       Kind = "xflow"       // a workflow of xFlow, a list of its states, or one memory block
	PromptFlow  Kind = "promptflow"  // a flow.dag.yaml of prompt flow, or a Prompty file
	LangChain4j Kind = "langchain4j" // a Java file, or an application.properties file, of a program with LangChain4j
	LangGraph   Kind = "langgraph"   // a Python file of a program with LangGraph, or a langgraph.json
	API         Kind = "api"         // an OpenAPI 3 or Swagger 2 file
	Module      Kind = "module"      // the source of a Python module
)

// Kinds lists the kinds that File converts.
func Kinds() []Kind {
	return []Kind{AIRefinery, XFlow, PromptFlow, LangChain4j, LangGraph, API, Module}
}

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

// maxFile is the maximum size of a converted file in bytes: the largest OpenAPI files
// that are in use have 13 MiB.
const maxFile = 64 << 20

func load(ctx context.Context, kind Kind, path string, opts loader.Options) (string, diag.List) {
	if kind == Module {
		return module(ctx, path, opts)
	}
	if kind == LangChain4j || kind == LangGraph && !strings.EqualFold(filepath.Ext(path), ".json") {
		return program(ctx, kind, path, opts)
	}
	if kind == PromptFlow && strings.EqualFold(filepath.Ext(path), ".prompty") {
		return prompty(ctx, path, opts)
	}
	opts.Limits.FileBytes, opts.Limits.TotalBytes = maxFile, maxFile
	value, file, list := loader.LoadValue(ctx, path, opts)
	r := input.NewReport(list)
	if value == nil {
		return "", r.Diagnostics()
	}
	var app *document.App
	root := input.FromValue(value)
	switch kind {
	case AIRefinery:
		app = airefinery.Convert(r, root)
	case API:
		var err error
		if app, err = openapi.Convert(r, root, strings.TrimSuffix(baseName(file.Path), filepath.Ext(file.Path)), references(ctx, path, opts)); err != nil {
			r.Malformed(root, "%s", err)
		}
	case PromptFlow:
		app = promptflow.Convert(r, root, reader(ctx, path, opts))
	case LangGraph:
		app = langgraph.Project(r, root, reader(ctx, path, opts))
	default:
		app = xflow.Convert(r, root)
	}
	if app == nil {
		return "", r.Diagnostics()
	}
	if kind != API { // whose keys are reported once for each name
		r.Rest(root)
	}
	return write(app, kind, file.Path), r.Diagnostics()
}

// reader returns a function that reads the files that a flow names.
func reader(ctx context.Context, path string, opts loader.Options) promptflow.Read {
	return func(name string) (*source.File, error) {
		if opts.Open != nil {
			return nil, errors.New("standard input has no folder: give the name of the file")
		}
		at := filepath.Join(filepath.Dir(path), filepath.FromSlash(name))
		if !trust.IsBelow(filepath.Dir(path), at) {
			return nil, errors.New("a link leads out of the folder of the file")
		}
		file, list := loader.LoadText(ctx, at, opts)
		if len(list) > 0 {
			return nil, errors.New(list[0].Message)
		}
		return file, nil
	}
}

// references returns a function that reads the files that an OpenAPI file refers to: those below its
// folder, of which links do not lead out either.
func references(ctx context.Context, path string, opts loader.Options) openapi.Read {
	if opts.Open != nil {
		return nil
	}
	folder := filepath.Dir(path)
	return func(name string) (*input.Node, error) {
		at := filepath.Join(folder, filepath.FromSlash(name))
		if !trust.IsBelow(folder, at) {
			return nil, errors.New("a link leads out of the folder of the file")
		}
		value, _, list := loader.LoadValue(ctx, at, opts)
		if value == nil {
			return nil, errors.New(list[0].Message)
		}
		return input.FromValue(value), nil
	}
}

// prompty converts a Prompty file: YAML between two lines ---, and a template.
func prompty(ctx context.Context, path string, opts loader.Options) (string, diag.List) {
	file, list := loader.LoadText(ctx, path, opts)
	if list != nil {
		return "", list
	}
	head := promptyHead().FindIndex(file.Text)
	if head == nil {
		return "", diag.List{input.Malformed.At(source.Span{File: file}, "not a Prompty file: it does not begin with YAML between two lines ---")}
	}
	opts.Open = func(context.Context, string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(bytes.TrimSuffix(bytes.TrimRight(file.Text[:head[1]], "\r\n"), []byte("---")))), nil
	}
	value, _, list := loader.LoadValue(ctx, path, opts)
	r := input.NewReport(list)
	if value == nil {
		return "", r.Diagnostics()
	}
	root := input.FromValue(value)
	app := promptflow.Prompty(r, root, file, head[1])
	if app == nil {
		return "", r.Diagnostics()
	}
	r.Rest(root)
	return write(app, PromptFlow, file.Path), r.Diagnostics()
}

var promptyHead = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)^---[ \t]*\r?\n.*?\n---[ \t]*(\r?\n|$)`) })

// maxProgram is the maximum size of a converted program in bytes.
const maxProgram = 1 << 20

// program converts the source of a program, of LangChain4j also all files of a folder.
func program(ctx context.Context, kind Kind, path string, opts loader.Options) (string, diag.List) {
	opts.Limits.FileBytes = maxProgram
	paths, err := programFiles(kind, path, opts)
	if err != nil {
		return "", diag.List{input.Malformed.At(source.Span{File: &source.File{Path: path}}, "%s", err)}
	}
	r := input.NewReport(nil)
	var files []*source.File
	var settings []langchain4j.Setting
	for _, one := range paths {
		if kind == LangChain4j && slices.Contains([]string{".yml", ".yaml"}, strings.ToLower(filepath.Ext(one))) {
			value, _, list := loader.LoadValue(ctx, one, opts)
			if value == nil {
				return "", list
			}
			settings = append(settings, langchain4j.FromYAML(input.FromValue(value))...)
			continue
		}
		file, list := loader.LoadText(ctx, one, opts)
		switch {
		case list != nil:
			return "", list
		case strings.EqualFold(filepath.Ext(one), ".properties"):
			settings = append(settings, langchain4j.FromProperties(file)...)
		default:
			files = append(files, file)
		}
	}
	var app *document.App
	if kind == LangGraph {
		app = langgraph.Convert(r, []langgraph.Program{{File: files[0], Module: moduleName(path, opts)}}, false)
	} else {
		app = langchain4j.Convert(r, files, settings)
	}
	if app == nil {
		return "", r.Diagnostics()
	}
	return write(app, kind, path), r.Diagnostics()
}

// maxFiles is the maximum number of files of a program that is a folder.
const maxFiles = 2000

// programFiles returns the files at a path: itself, or the Java files and settings below a folder.
// Links are not followed.
func programFiles(kind Kind, path string, opts loader.Options) ([]string, error) {
	info, err := os.Stat(path)
	if opts.Open != nil || err != nil || !info.IsDir() || kind != LangChain4j {
		return []string{path}, nil //nolint:nilerr // reading the file reports the error
	}
	var all []string
	err = filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && at != path && slices.Contains([]string{"target", "build", "node_modules", "test"}, d.Name()), d.IsDir() && at != path && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		case filepath.Ext(at) == ".java", slices.Contains([]string{"application.properties", "application.yml", "application.yaml"}, d.Name()):
			all = append(all, at)
		}
		if len(all) > maxFiles {
			return fmt.Errorf("the folder has more than %d files: convert a part of it", maxFiles)
		}
		return nil
	})
	if err == nil && len(all) == 0 {
		err = errors.New("the folder has no Java file and no application.properties or application.yml")
	}
	return all, err
}

// module converts the source of a Python module, which may be named by its dotted name.
func module(ctx context.Context, path string, opts loader.Options) (string, diag.List) {
	name := path
	if opts.Open == nil {
		path = moduleFile(path)
	}
	if path == name {
		name = moduleName(path, opts)
	}
	file, list := loader.LoadText(ctx, path, opts)
	if list != nil {
		return "", list
	}
	r := input.NewReport(nil)
	malformed := func(err error) (string, diag.List) {
		r.Add(input.Malformed.At(input.Bytes(file, 0, 1), "%s", err))
		return "", r.Diagnostics()
	}
	python, err := pymodule.Interpreter()
	if err != nil {
		return malformed(err)
	}
	app, err := pymodule.Convert(ctx, r, python, name, file)
	if err != nil {
		return malformed(err)
	}
	return write(app, Module, file.Path), r.Diagnostics()
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

// moduleName returns the name of the module at a path.
func moduleName(path string, opts loader.Options) string {
	if opts.Open != nil { // the text has no place among modules
		return "module"
	}
	return pymodule.PathOf(path)
}

// write returns the text of a document, which names its origin.
func write(app *document.App, kind Kind, path string) string {
	app.Comments = append([]string{fmt.Sprintf("Made by qtype convert %s from %s.", kind, baseName(path))}, app.Comments...)
	return app.YAML()
}

// baseName returns the last element of a path with slashes or backslashes.
func baseName(path string) string {
	return path[strings.LastIndexAny(path, `/\`)+1:]
}
