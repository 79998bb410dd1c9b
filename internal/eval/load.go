// Package eval runs a data set through a flow, scores the results by metrics, compares
// variants of the application with each other and with an earlier evaluation, and reports
// the result.
package eval

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// Program is an application that is evaluated.
type Program struct {
	App *spec.Application
	New func() (*runtime.App, error) // makes the application; memories are in process
}

// Opener reads a document, lets edit change it before it is checked, and checks it. env
// has variables that replace those of the environment. The program is complete if the
// list has no errors.
type Opener func(ctx context.Context, path string, env map[string]string, edit func(*spec.Document)) (*Program, diag.List)

// Config describes an evaluation.
type Config struct {
	Path          string   // the document, or a file *.qtype-eval.yaml
	Data          string   // the file with the rows; empty for that of the evaluation file
	Flow          string   // the flow's id; empty for that of the evaluation file, or the first one
	Metrics       []string // further metrics: a type, or the keys of a metric in YAML
	Variants      []string // further variants: the keys of a variant in YAML
	Session       string   // the column with the session of each row; empty for session_id or session
	Workers       int      // rows that are run at once
	Limit         int64    // rows to evaluate; 0 for all
	MaxRegression float64  // for metrics that declare none
	Baseline      *Report  // nil for none
	Journal       string   // the file with finished rows; empty for none
	Resume        bool     // continue an interrupted evaluation
	Restart       bool     // discard an interrupted evaluation

	Progress func(done, total int) // called after each row; may be nil
}

// Evaluation is a checked evaluation.
type Evaluation struct {
	config   Config
	flow     *spec.Flow // of the application without a variant
	data     string
	metrics  []*metric
	variants []*variant
	base     *Program
}

// Summary returns what is evaluated: "2 metrics, 3 variants".
func (e *Evaluation) Summary() string {
	sum := textfmt.Count(len(e.metrics), "metric")
	if len(e.variants) > 1 {
		sum += ", " + textfmt.Count(len(e.variants), "variant")
	}
	return sum
}

// variant is an application that is evaluated.
type variant struct {
	declared *spec.Variant
	program  *Program
}

// Suffixes are the ends of the names of evaluation files.
func Suffixes() []string { return []string{".qtype-eval.yaml", ".qtype-eval.yml"} }

// IsFile reports whether a path is that of an evaluation file.
func IsFile(path string) bool {
	return slices.ContainsFunc(Suffixes(), func(s string) bool { return strings.HasSuffix(path, s) })
}

// Load reads and checks what is evaluated. The Evaluation is nil if the list has errors.
func Load(ctx context.Context, cfg Config, open Opener) (*Evaluation, diag.List) {
	declared, list := read(ctx, &cfg)
	if list.Errors() > 0 {
		return nil, list
	}
	path, folder := cfg.Path, ""
	if IsFile(cfg.Path) {
		folder = filepath.Dir(cfg.Path)
		path = declared.App
		if path == "" {
			path = defaultApplication(cfg.Path)
		} else {
			path = relative(folder, path)
		}
	}
	base, found := open(ctx, path, nil, func(*spec.Document) {})
	if found.Errors() > 0 {
		return nil, append(list, found...)
	}
	e := &Evaluation{config: cfg, base: base, data: cfg.Data}
	if e.data == "" && declared.Data != "" {
		e.data = relative(folder, declared.Data)
	}
	c := &checker{evaluation: e, app: base.App, folder: folder, path: path, open: open, list: list}
	c.check(ctx, declared)
	c.list.Sort()
	if c.list.Errors() > 0 {
		return nil, c.list
	}
	return e, c.list
}

func relative(folder, path string) string {
	if filepath.IsAbs(path) || strings.Contains(path, "://") {
		return path
	}
	return filepath.Join(folder, filepath.FromSlash(path))
}

func defaultApplication(path string) string {
	for _, s := range Suffixes() {
		if name, ok := strings.CutSuffix(path, s); ok {
			return name + ".qtype" + filepath.Ext(s)
		}
	}
	return path
}

// read reads the evaluation file, and the metrics and variants of the command line.
func read(ctx context.Context, cfg *Config) (*spec.Evaluation, diag.List) {
	declared := &spec.Evaluation{}
	var list diag.List
	if IsFile(cfg.Path) {
		_, list = loader.LoadInto(ctx, cfg.Path, "evaluation file", declared, loader.Options{})
	}
	for i, text := range cfg.Metrics {
		if _, known := spec.LookupMetric(text); known || !strings.Contains(text, ":") {
			text = "type: " + text
		}
		m := &spec.Metric{}
		list = append(list, readText(ctx, fmt.Sprintf("--metric %d", i+1), "metric", text, m)...)
		declared.Metrics = append(declared.Metrics, m)
	}
	for i, text := range cfg.Variants {
		v := &spec.Variant{}
		list = append(list, readText(ctx, fmt.Sprintf("--variant %d", i+1), "variant", text, v)...)
		declared.Variants = append(declared.Variants, v)
	}
	return declared, list
}

// readText decodes keys that are given on the command line, without brackets around them.
func readText(ctx context.Context, name, what, text string, to spec.Node) diag.List {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") {
		text = "{" + text + "}"
	}
	o := loader.Options{NoDotEnv: true, Open: func(context.Context, string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}}
	_, list := loader.LoadInto(ctx, name, what, to, o)
	return list
}

// spanOf returns the position of a key, or that of the node if it has no such key.
func spanOf(n spec.Node, key string) source.Span {
	if n.Position() == nil {
		return source.Span{}
	}
	if field, ok := n.Position().Lookup(key); ok {
		return field.Span()
	}
	return n.Position().Span()
}
