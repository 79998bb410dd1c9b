package semdiff

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/spec"
)

// TestRules_Documented checks that docs/diff.md lists the keys of all rules.
func TestRules_Documented(t *testing.T) {
	page, err := os.ReadFile("../../docs/diff.md")
	if err != nil {
		t.Fatal(err)
	}
	for kind, rules := range rules() {
		for key := range rules {
			if key == "" || kind == spec.KindFlow && key == "type" { // the only value
				continue
			}
			if !strings.Contains(string(page), "`"+key+"`") {
				t.Errorf("docs/diff.md does not list key %[2]s of %[1]s", kind, key)
			}
		}
	}
}

// TestRules_KnownKeys checks that the keys of all rules exist.
func TestRules_KnownKeys(t *testing.T) {
	known := map[string]bool{}
	for _, n := range []spec.Node{&spec.Flow{}, &spec.Memory{}, &spec.Store{}, &spec.Variable{}, &spec.CustomType{}, &spec.Model{}, &spec.EmbeddingModel{}, &spec.Telemetry{}, &spec.FlowInterface{}} {
		keys(known, n)
	}
	for _, u := range spec.Unions() {
		for _, c := range u.Cases {
			keys(known, c.New())
		}
	}
	for kind, rules := range rules() {
		for key := range rules {
			last := key[strings.LastIndexByte(key, '.')+1:]
			if key != "" && !known[last] {
				t.Errorf("%s has no key %s", kind, key)
			}
		}
	}
}

// keys adds the keys of a struct.
func keys(known map[string]bool, n spec.Node) {
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Anonymous && f.Type.Kind() == reflect.Struct {
				walk(f.Type)
			}
			known[f.Tag.Get("yaml")] = true
		}
	}
	walk(reflect.TypeOf(n).Elem())
	known["type"] = true
}

// TestKinds checks that each kind of entity that a document declares has a row.
func TestKinds(t *testing.T) {
	entities := []spec.Entity{&spec.Application{}, &spec.Flow{}, &spec.Memory{}, &spec.Store{}, &spec.Variable{}, &spec.CustomType{}, &spec.Telemetry{}}
	for _, u := range spec.Unions() {
		if e, ok := u.Cases[0].New().(spec.Entity); ok {
			entities = append(entities, e)
		}
	}
	for _, e := range entities {
		if kindRank(e.Kind()) == len(kinds()) {
			t.Errorf("kind %q has no row in kinds", e.Kind())
		}
	}
}
