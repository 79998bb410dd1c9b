package docgen

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/schemagen"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// maxSampleLines is the length of an example; longer ones are not shown.
const maxSampleLines = 24

// samples are examples in YAML, by struct.
type samples map[reflect.Type]string

// readSamples collects an example of each struct: from the example applications, and
// what these do not have from the correct samples of the rules and the documents in testdata.
// It collects an example of each key, too.
func readSamples(ctx context.Context, root string) (samples, keyExamples, error) {
	all, keys := samples{}, keyExamples{}
	files, err := filepath.Glob(filepath.Join(root, "examples", "*", "*.yaml"))
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		if err := all.collectFile(ctx, file, keys); err != nil {
			return nil, nil, err
		}
	}
	rest := samples{}
	for _, r := range lint.Rules() {
		if result, diags := loader.LoadBytes(ctx, r.Code, []byte(r.Right), loader.Options{}); diags.Err() == nil {
			rest.collect(reflect.ValueOf(result.Document), keys)
		}
	}
	for t, text := range rest {
		if all[t] == "" {
			all[t] = text
		}
	}
	return all, keys, readKeyDocuments(ctx, root, all, keys)
}

// collectFile adds the examples of a document, or of a file of tests or of an evaluation.
func (s samples) collectFile(ctx context.Context, file string, keys keyExamples) error {
	var root any
	var diags diag.List
	switch {
	case strings.HasSuffix(file, ".qtype-test.yaml"):
		suite := &spec.Suite{}
		_, diags = loader.LoadInto(ctx, file, "tests", suite, loader.Options{})
		root = suite
	case strings.HasSuffix(file, ".qtype-eval.yaml"):
		evaluation := &spec.Evaluation{}
		_, diags = loader.LoadInto(ctx, file, "evaluation", evaluation, loader.Options{})
		root = evaluation
	default:
		var result *loader.Result
		result, diags = loader.Load(ctx, file, loader.Options{})
		root = result.Document
	}
	if err := diags.Err(); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	s.collect(reflect.ValueOf(root), keys)
	return nil
}

// collect adds examples of all structs below a value, and of their keys.
func (s samples) collect(v reflect.Value, keys keyExamples) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			s.collect(v.Elem(), keys)
		}
	case reflect.Slice:
		for i := range v.Len() {
			s.collect(v.Index(i), keys)
		}
	case reflect.Struct:
		if _, ok := targetOf(v.Type()); ok {
			return // a reference; its target is collected where it is declared
		}
		if n, ok := v.Addr().Interface().(spec.Node); ok && n.Position() != nil {
			s.add(v.Type(), excerpt(n.Position().Span()))
			keys.add(n)
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				s.collect(v.Field(i), keys)
			}
		}
	}
}

// add keeps an example if it shows more keys than the one before, or the same in
// fewer lines.
func (s samples) add(t reflect.Type, text string) {
	if text == "" || strings.Count(text, "\n") >= maxSampleLines {
		return
	}
	before := s[t]
	more := strings.Count(text, ":") - strings.Count(before, ":")
	if before == "" || more > 0 || more == 0 && len(text) < len(before) {
		s[t] = text
	}
}

// excerpt returns the text of a span without its indentation.
func excerpt(span source.Span) string {
	if span.File == nil {
		return ""
	}
	var lines []string
	for n := span.Start.Line; n <= span.End.Line; n++ {
		line := []rune(span.File.Line(n))
		if n == span.End.Line {
			line = line[:min(len(line), span.End.Column-1)]
		}
		indent := min(len(line), span.Start.Column-1)
		if n > span.Start.Line && strings.TrimSpace(string(line[:indent])) != "" {
			return "" // a flow mapping that continues left of its start
		}
		lines = append(lines, strings.TrimRight(string(line[indent:]), " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// synthesize returns an example of a struct that no document contains: its required
// keys, or all keys if none is required.
func synthesize(t reflect.Type) string {
	fields := schemagen.Fields(t)
	required := slices.DeleteFunc(slices.Clone(fields), func(f schemagen.Field) bool { return !f.Required })
	lines := []string{}
	if tag := tagOf(t); tag != "" {
		lines = append(lines, "type: "+tag)
	}
	if len(required) > 0 {
		fields = required
	}
	for _, f := range fields {
		lines = append(lines, f.Key+": "+placeholder(f))
	}
	return strings.Join(lines, "\n")
}

// placeholder returns a value that a key accepts.
func placeholder(f schemagen.Field) string {
	if text := cmp.Or(f.Tag.Get("example"), f.Tag.Get("default")); text != "" {
		return text
	}
	if _, choices, ok := strings.Cut(f.Rules, "oneof="); ok {
		return strings.Fields(choices)[0]
	}
	switch f.Type {
	case reflect.TypeFor[spec.Secret]():
		return "${" + strings.ToUpper(f.Key) + "}"
	case reflect.TypeFor[spec.Duration]():
		return "30s"
	case reflect.TypeFor[spec.Thinking]():
		return string(spec.ThinkingLow)
	case reflect.TypeFor[spec.PathRef]():
		return "{uri: rows.csv}"
	}
	switch f.Type.Kind() {
	case reflect.Int, reflect.Float64:
		return "10"
	case reflect.Bool:
		return "true"
	case reflect.Slice:
		return "[]"
	case reflect.Map:
		return "{}"
	}
	return "my_" + f.Key
}
