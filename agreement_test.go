package qtype_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/containment"
	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// TestValidateAgreesWithRun sets every key with a fixed set of values, in every document
// of the corpus, to each of its values: what validation accepts, a run can build.
func TestValidateAgreesWithRun(t *testing.T) {
	credentials(t)
	module, err := os.Getwd()
	testkit.Must(t, err)
	documents := corpus(t, module)
	t.Chdir(t.TempDir())
	values := enumValues()
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		text := documents[name]
		for _, m := range mutations(t, text) {
			if values[m.value] == built {
				continue // another document has shown it
			}
			values[m.value] = max(values[m.value], outcomeOf(t, name, m))
		}
	}
	for value, outcome := range values {
		if isRefused := slices.Contains(refusedValues(), value); isRefused == (outcome == built) {
			t.Errorf("%s: built: %v", value, !isRefused)
		}
	}
	t.Logf("%d values", len(values))
}

// refusedValues lists the values that are known, but that neither validation nor a run
// accepts: a provider without models of that kind, a key of chat models.
func refusedValues() []string {
	return []string{"Model.provider=hugot", "EmbeddingModel.provider=anthropic", "EmbeddingModel.provider=langchaingo:huggingface",
		"EmbeddingModel.provider=langchaingo:mistral", "EmbeddingModel.provider=langchaingo:ollama", "EmbeddingModel.api=chat", "EmbeddingModel.api=responses",
		"EmbeddingModel.prompt_cache=5m", "EmbeddingModel.prompt_cache=1h", "EmbeddingModel.prompt_cache=none"}
}

// The outcomes of a value, the better ones later.
const (
	unseen = iota
	invalid
	built
)

// mutation is a document with one value of one key.
type mutation struct{ value, text string }

// outcomeOf validates a document and builds it if it is valid.
func outcomeOf(t *testing.T, name string, m mutation) int {
	t.Helper()
	const path = "app.qtype.yaml"
	testkit.Must(t, os.WriteFile(path, []byte(m.text), 0o600))
	program, list := qtype.Check(t.Context(), path, qtype.WithStrict())
	if list.Errors() > 0 || program.Document.Application == nil {
		return invalid
	}
	err := build(t, program)
	if _, otherBuild := errors.AsType[*parts.MissingError](err); otherBuild {
		return built // the distribution has it
	}
	if _, missing := errors.AsType[*containment.UnavailableError](err); missing {
		return built // it depends on the programs of this computer
	}
	if err != nil {
		t.Errorf("%s with %s is valid, but a run refuses it: %v\n%s", name, m.value, err, m.text)
	}
	return built
}

// build builds every flow of a program as a run does, and runs no row.
func build(t *testing.T, program *qtype.Program) error {
	t.Helper()
	app, err := qtype.New(program, qtype.WithEphemeral(), qtype.WithClientTool("", nil))
	if err != nil {
		return err
	}
	defer func() { testkit.Must(t, app.Close(context.WithoutCancel(t.Context()))) }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, f := range program.Document.Application.Flows {
		for _, err := range app.Run(ctx, f.ID, slices.Values([]runtime.Input(nil))) {
			if err != nil {
				return fmt.Errorf("flow %s: %w", f.ID, err)
			}
		}
	}
	return nil
}

// enumValues lists the values of all keys with a fixed set of values, as type.key=value.
func enumValues() map[string]int {
	values := map[string]int{}
	for _, t := range nodeTypes() {
		for _, e := range enumsOf(t) {
			for _, v := range e.values {
				values[t.Name()+"."+e.key+"="+v] = unseen
			}
		}
	}
	return values
}

type enum struct {
	key    string
	values []string
}

// enumsOf lists the keys of a struct with a fixed set of values.
func enumsOf(t reflect.Type) []enum {
	var all []enum
	for i := range t.NumField() {
		f := t.Field(i)
		key := f.Tag.Get("yaml")
		if f.Anonymous && key == "" && f.Type.Kind() == reflect.Struct {
			all = append(all, enumsOf(f.Type)...)
			continue
		}
		for _, rule := range strings.Split(new(spec.Language).ValidateTag(f), ",") {
			if list, ok := strings.CutPrefix(rule, "oneof="); ok && key != "" {
				all = append(all, enum{key, strings.Fields(list)})
			}
		}
	}
	return all
}

// nodeTypes lists the structs of the language that a document can reach.
func nodeTypes() []reflect.Type {
	var found []reflect.Type
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(t reflect.Type) {
		if seen[t] || !strings.HasSuffix(t.PkgPath(), "/spec") && t.Kind() == reflect.Struct {
			return
		}
		seen[t] = true
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			visit(t.Elem())
		case reflect.Interface:
			for _, u := range spec.Unions() {
				if u.Type == t {
					for _, c := range u.Cases {
						visit(reflect.TypeOf(c.New()))
					}
				}
			}
		case reflect.Struct:
			if reflect.PointerTo(t).Implements(reflect.TypeFor[spec.Node]()) && !strings.HasSuffix(t.Name(), "Base") {
				found = append(found, t)
			}
			for i := range t.NumField() {
				if f := t.Field(i); f.IsExported() && !f.Anonymous || f.Anonymous && f.Type.Kind() == reflect.Struct {
					visit(f.Type)
				}
			}
		}
	}
	visit(reflect.TypeFor[spec.Application]())
	return found
}

// mutations returns a document with each value of each such key of each of its nodes.
func mutations(t *testing.T, text string) []mutation {
	t.Helper()
	loaded, _ := loader.LoadBytes(t.Context(), "app.qtype.yaml", []byte(text), loader.Options{})
	var all []mutation
	seen := map[string]bool{}
	visitNodes(reflect.ValueOf(loaded.Document), map[any]bool{}, func(n spec.Node) {
		typ := reflect.TypeOf(n).Elem()
		for _, e := range enumsOf(typ) {
			for _, v := range e.values {
				if changed, ok := withKey(text, n.Position(), e.key, v); ok && !seen[changed] {
					seen[changed] = true
					all = append(all, mutation{typ.Name() + "." + e.key + "=" + v, changed})
				}
			}
		}
	})
	return all
}

// visitNodes calls f for every node below v.
func visitNodes(v reflect.Value, seen map[any]bool, f func(spec.Node)) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() || v.Kind() == reflect.Pointer && seen[v.Interface()] {
			return
		}
		if n, ok := v.Interface().(spec.Node); ok && v.Kind() == reflect.Pointer {
			seen[v.Interface()] = true
			f(n)
		}
		visitNodes(v.Elem(), seen, f)
	case reflect.Slice:
		for i := range v.Len() {
			visitNodes(v.Index(i), seen, f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() && field.Type != reflect.TypeFor[spec.Positioned]() {
				visitNodes(v.Field(i), seen, f)
			}
		}
	}
}

// withKey returns a text with another value of a key of a mapping. A key that is absent
// is inserted before the first one.
func withKey(text string, at *spec.Position, key, value string) (string, bool) {
	if at == nil || len(at.Parts) == 0 {
		return "", false
	}
	lines := strings.SplitAfter(text, "\n")
	replace := func(line, from, to int, with string) string {
		runes := []rune(lines[line-1])
		changed := slices.Clone(lines)
		changed[line-1] = string(runes[:from-1]) + with + string(runes[to-1:])
		return strings.Join(changed, "")
	}
	if field, ok := at.Lookup(key); ok {
		if field.Value.Start.Line != field.Value.End.Line {
			return "", false
		}
		return replace(field.Value.Start.Line, field.Value.Start.Column, field.Value.End.Column, fmt.Sprintf("%q", value)), true
	}
	first := at.Parts[0].Key
	if first.Start.Line == 0 {
		return "", false
	}
	before := string([]rune(lines[first.Start.Line-1])[:first.Start.Column-1])
	separator := ", "
	if !strings.HasSuffix(strings.TrimSpace(before), "{") {
		separator = "\n" + strings.Repeat(" ", first.Start.Column-1)
	}
	return replace(first.Start.Line, first.Start.Column, first.Start.Column, fmt.Sprintf("%s: %q%s", key, value, separator)), true
}

// credentials sets the variables of keys and accounts of all providers, so that only a
// document can be the reason why a model cannot be built.
func credentials(t *testing.T) {
	t.Helper()
	for _, row := range spec.Providers() {
		for _, name := range row.KeyEnv {
			t.Setenv(name, "key")
		}
	}
	for name, value := range map[string]string{"COHERE_API_KEY": "key", "AZURE_OPENAI_ENDPOINT": "https://shop.openai.azure.com", "AWS_REGION": "eu-west-1",
		"GOOGLE_CLOUD_PROJECT": "shop", "GOOGLE_CLOUD_LOCATION": "europe-west4"} {
		t.Setenv(name, value)
	}
}

// corpus returns valid documents: the examples of all rules, of the repository, and those
// that the test needs for rare types.
func corpus(t *testing.T, module string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, r := range lint.Rules() {
		if r.Right != "" {
			all[r.Code] = r.Right
		}
	}
	unresolved := regexp.MustCompile(`!include|\$\{`)
	for _, folder := range []string{"examples", "testdata/agreement"} {
		testkit.Must(t, fs.WalkDir(os.DirFS(module), folder, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".qtype.yaml") {
				text := testkit.ReadFile(t, filepath.Join(module, path))
				if !unresolved.MatchString(text) {
					all[path] = text
				}
			}
			return err
		}))
	}
	return all
}
