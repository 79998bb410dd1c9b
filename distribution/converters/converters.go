// Package converters converts the files of AI frameworks and services: AI Refinery project files, xFlow workflows, flows of prompt
// flow, and programs that use LangChain4j or LangGraph. Each has a package. Package code reads parts of programs
// in Java and Python, assistant builds documents of them, and jq translates the expressions of xFlow.
package converters

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/distribution/converters/airefinery"
	"github.com/qtype-dev/qtype/distribution/converters/langchain4j"
	"github.com/qtype-dev/qtype/distribution/converters/langgraph"
	"github.com/qtype-dev/qtype/distribution/converters/openaievals"
	"github.com/qtype-dev/qtype/distribution/converters/promptflow"
	"github.com/qtype-dev/qtype/distribution/converters/promptfoo"
	"github.com/qtype-dev/qtype/distribution/converters/xflow"
	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// Converters returns the table of the converters of the core and of these systems. The caller may change it.
func Converters() convert.Converters {
	all := convert.Core()
	maps.Copy(all, convert.Converters{
		convert.AIRefinery: tree(func(_ context.Context, r *input.Report, root *input.Node, _ convert.Input) *document.App {
			return airefinery.Convert(r, root)
		}),
		convert.XFlow: tree(func(_ context.Context, r *input.Report, root *input.Node, _ convert.Input) *document.App {
			return xflow.Convert(r, root)
		}),
		convert.PromptFoo:   tree(promptfoo.Convert),
		convert.OpenAIEvals: tree(openaievals.Convert),
		convert.PromptFlow:  promptFlow,
		convert.LangChain4j: langChain4j,
		convert.LangGraph:   langGraph,
	})
	return all
}

// tree makes a converter of YAML and JSON. What it does not read is reported.
func tree(build func(context.Context, *input.Report, *input.Node, convert.Input) *document.App) convert.Converter {
	return func(ctx context.Context, in convert.Input) (*document.App, diag.List) {
		r, root := in.Tree(ctx)
		if root == nil {
			return nil, r.Diagnostics()
		}
		app := build(ctx, r, root, in)
		if app != nil {
			r.Rest(root)
		}
		return app, r.Diagnostics()
	}
}

// promptFlow converts a flow.dag.yaml or a Prompty file.
func promptFlow(ctx context.Context, in convert.Input) (*document.App, diag.List) {
	if strings.EqualFold(filepath.Ext(in.Path), ".prompty") {
		return prompty(ctx, in)
	}
	return tree(func(ctx context.Context, r *input.Report, root *input.Node, in convert.Input) *document.App {
		return promptflow.Convert(r, root, read(ctx, in))
	})(ctx, in)
}

// read returns a function that reads the files that a file names.
func read(ctx context.Context, in convert.Input) promptflow.Read {
	return func(name string) (*source.File, error) { return in.Text(ctx, name) }
}

// prompty converts a Prompty file: YAML between two lines ---, and a template.
func prompty(ctx context.Context, in convert.Input) (*document.App, diag.List) {
	file, list := loader.LoadText(ctx, in.Path, in.Options)
	if list != nil {
		return nil, list
	}
	head := promptyHead().FindIndex(file.Text)
	if head == nil {
		return nil, diag.List{input.Malformed.At(source.Span{File: file}, "not a Prompty file: it does not begin with YAML between two lines ---")}
	}
	in.Options.Open = func(context.Context, string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(bytes.TrimSuffix(bytes.TrimRight(file.Text[:head[1]], "\r\n"), []byte("---")))), nil
	}
	return tree(func(_ context.Context, r *input.Report, root *input.Node, _ convert.Input) *document.App {
		return promptflow.Prompty(r, root, file, head[1])
	})(ctx, in)
}

var promptyHead = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)^---[ \t]*\r?\n.*?\n---[ \t]*(\r?\n|$)`) })

// maxProgram is the maximum size of a converted program in bytes.
const maxProgram = 1 << 20

// langGraph converts a langgraph.json or the source of a program.
func langGraph(ctx context.Context, in convert.Input) (*document.App, diag.List) {
	if strings.EqualFold(filepath.Ext(in.Path), ".json") {
		return tree(func(ctx context.Context, r *input.Report, root *input.Node, in convert.Input) *document.App {
			return langgraph.Project(r, root, read(ctx, in))
		})(ctx, in)
	}
	in.Options.Limits.FileBytes = maxProgram
	file, list := loader.LoadText(ctx, in.Path, in.Options)
	if list != nil {
		return nil, list
	}
	r := input.NewReport(nil)
	return langgraph.Convert(r, []langgraph.Program{{File: file, Module: in.Module()}}, false), r.Diagnostics()
}

// langChain4j converts the source of a program, its settings, or all files of a folder.
func langChain4j(ctx context.Context, in convert.Input) (*document.App, diag.List) {
	in.Options.Limits.FileBytes = maxProgram
	paths, err := programFiles(in)
	if err != nil {
		return nil, diag.List{input.Malformed.At(source.Span{File: &source.File{Path: in.Path}}, "%s", err)}
	}
	var files []*source.File
	var settings []langchain4j.Setting
	for _, one := range paths {
		if slices.Contains([]string{".yml", ".yaml"}, strings.ToLower(filepath.Ext(one))) {
			value, _, list := loader.LoadValue(ctx, one, in.Options)
			if value == nil {
				return nil, list
			}
			settings = append(settings, langchain4j.FromYAML(input.FromValue(value))...)
			continue
		}
		file, list := loader.LoadText(ctx, one, in.Options)
		switch {
		case list != nil:
			return nil, list
		case strings.EqualFold(filepath.Ext(one), ".properties"):
			settings = append(settings, langchain4j.FromProperties(file)...)
		default:
			files = append(files, file)
		}
	}
	r := input.NewReport(nil)
	return langchain4j.Convert(r, files, settings), r.Diagnostics()
}

// maxFiles is the maximum number of files of a program that is a folder.
const maxFiles = 2000

// programFiles returns the files at the path: itself, or the Java files and settings below a folder.
// Links are not followed.
func programFiles(in convert.Input) ([]string, error) {
	path := in.Path
	info, err := os.Stat(path)
	if in.Options.Open != nil || err != nil || !info.IsDir() {
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
