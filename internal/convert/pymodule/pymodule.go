// Package pymodule converts the functions of a Python module to tools.
package pymodule

import (
	"context"
	_ "embed" // the script
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/spec/source"
)

// script describes a module. Python parses the source; it does not run it.
//
//go:embed describe.py
var script string

// description is what the script writes.
type description struct {
	Error     string
	Functions []struct {
		Name, Description, Result string
		Inputs                    []variable
	}
	Types []struct {
		Name, Description string
		Fields            []variable
	}
	Skipped []struct { // functions and classes that have no counterpart
		Name, Reason string
		Line         int
	}
}

// variable is a parameter of a function or a field of a class.
type variable struct{ Name, Type string }

// timeLimit is how long parsing a module may take.
const timeLimit = 20 * time.Second

// maxOutput is the maximum size of a description in bytes.
const maxOutput = 4 << 20

// modulePath matches the dotted path of a Python module.
var modulePath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)
})

// IsPath reports whether a name is the dotted path of a Python module.
func IsPath(name string) bool { return modulePath().MatchString(name) }

// PathOf returns the dotted path of the module in a file: that of a relative path, from the
// folder in which Python is started, otherwise the name of the file.
func PathOf(file string) string {
	file = filepath.ToSlash(filepath.Clean(file))
	if !filepath.IsLocal(file) {
		file = path.Base(file)
	}
	name := strings.TrimSuffix(strings.TrimSuffix(file, ".py"), "/__init__")
	return strings.ReplaceAll(name, "/", ".")
}

// Interpreter returns the path of the python3 that parses modules.
func Interpreter() (string, error) {
	found, err := exec.LookPath("python3")
	if err != nil {
		return "", errors.New("converting a module needs python3, which was not found in PATH")
	}
	return found, nil
}

// Convert makes a tool of each public function of the module with the dotted path name, and
// reports functions without a counterpart. python is the interpreter that parses the file.
func Convert(ctx context.Context, r *input.Report, python, name string, file *source.File) (*document.App, error) {
	if !IsPath(name) {
		return nil, fmt.Errorf("'%s' is not the dotted path of a module", name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeLimit, fmt.Errorf("timed out after %s", timeLimit))
	defer cancel()
	p := subprocess.Program{Path: python, Args: []string{"-I", "-S", "-c", script}, MaxOutput: maxOutput, Supervisor: subprocess.SupervisorOf(ctx)}
	out, err := p.Run(ctx, file.Text)
	if err != nil {
		return nil, fmt.Errorf("the module %s cannot be parsed: %w", name, err)
	}
	var d description
	if err := json.Unmarshal(out, &d); err != nil {
		return nil, fmt.Errorf("the module %s cannot be parsed: %w", name, err)
	}
	for _, s := range d.Skipped {
		width := len([]rune(file.Line(s.Line)))
		at := source.Span{File: file, Start: source.Pos{Line: s.Line, Column: 1}, End: source.Pos{Line: s.Line, Column: width + 1}}
		r.Add(input.Unsupported.At(at, "%s is left out: %s", s.Name, s.Reason))
	}
	switch {
	case d.Error != "":
		return nil, errors.New(d.Error)
	case len(d.Functions) == 0 && len(d.Skipped) > 0:
		return nil, errors.New(d.Skipped[len(d.Skipped)-1].Reason)
	case len(d.Functions) == 0:
		return nil, fmt.Errorf("no public functions found in module '%s'", name)
	}
	app := d.document(name)
	for _, s := range d.Skipped {
		app.Comments = append(app.Comments, s.Name+" is left out: "+s.Reason)
	}
	return app, nil
}

// document returns the application with the tools.
func (d *description) document(name string) *document.App {
	app := &document.App{ID: name}
	used := map[string]bool{}
	for _, f := range d.Functions {
		text := f.Description
		if text == "" {
			text = "Function " + f.Name
		}
		t := new(document.Block).Set("type", "PythonFunctionTool").Set("id", name+"."+f.Name).Set("name", f.Name).Set("description", text).
			Set("function_name", f.Name).Set("module_path", name)
		var inputs []*document.Block
		for _, in := range f.Inputs {
			inputs = append(inputs, declaration(in.Name, in.Type))
			use(used, in.Type)
		}
		if len(inputs) > 0 {
			t.Set("inputs", inputs)
		}
		use(used, f.Result)
		app.Tools = append(app.Tools, t.Set("outputs", []*document.Block{declaration(f.Name+"_result", f.Result)}))
	}
	for grew := true; grew; { // types that used types name are used, too
		before := len(used)
		for _, t := range d.Types {
			for _, f := range t.Fields {
				if used[t.Name] {
					use(used, f.Type)
				}
			}
		}
		grew = len(used) > before
	}
	for _, t := range d.Types {
		if used[t.Name] {
			app.CustomTypes = append(app.CustomTypes, record(t.Name, t.Description, t.Fields))
		}
	}
	return app
}

// typeName matches a name in a type expression.
var typeName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`) })

// use marks the names in a type expression.
func use(used map[string]bool, typ string) {
	for _, name := range typeName().FindAllString(typ, -1) {
		used[name] = true
	}
}

func declaration(name, typ string) *document.Block {
	return (&document.Block{Inline: true}).Set("id", name).Set("type", typ)
}

// record returns a custom type. Its fields have types whose names are written as they are.
func record(name, text string, fields []variable) *document.Type {
	t := &document.Type{Kind: document.Record, Name: name, Description: text}
	for _, f := range fields {
		bare, optional := strings.CutSuffix(f.Type, "?")
		t.Fields = append(t.Fields, &document.Field{Name: f.Name, Type: &document.Type{Kind: document.Record, Name: bare, Optional: optional}})
	}
	return t
}
