package schemagen_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/loader"
)

// TestSchema_Null replaces the value of each key of the examples by null: the schema and the loader must agree
// on whether it is valid.
func TestSchema_Null(t *testing.T) {
	s := compile(t)
	files, err := filepath.Glob("../../examples/*/*.qtype.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	for _, file := range append(files, "../../validate/testdata/additions.qtype.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var root yaml.Node
		if err := yaml.Unmarshal(text, &root); err != nil {
			t.Fatal(err)
		}
		withNull(&root, "", func(key string) {
			if tried[key] {
				return
			}
			tried[key] = true
			changed, err := yaml.Marshal(&root)
			if err != nil {
				t.Fatal(err)
			}
			_, list := loader.LoadBytes(t.Context(), file, changed, loader.Options{NoDotEnv: true, Lookup: func(string) (string, bool) { return "1", true }})
			schema := s.Validate(parseAsEditor(t, changed))
			if accepts := list.Errors() == 0; accepts != (schema == nil) {
				t.Errorf("%s: %s: null: the loader reports %v, the schema %v", filepath.Base(file), key, list, schema)
			}
		})
	}
	t.Logf("%d keys tried", len(tried))
}

// withNull calls try with each value of the mappings of a tree as null. key is its path without numbers, with the types of entities.
func withNull(n *yaml.Node, path string, try func(key string)) {
	for i, c := range n.Content {
		if n.Kind != yaml.MappingNode {
			withNull(c, path, try)
			continue
		}
		if i%2 == 1 {
			continue
		}
		value := n.Content[i+1]
		key := fmt.Sprintf("%s/%s%s", path, typeOf(n), c.Value)
		if value.Tag != "!include" && value.Tag != "!include_raw" {
			kept := *value
			*value = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
			try(key)
			*value = kept
		}
		withNull(value, key, try)
	}
}

// typeOf returns the type of an entity and a colon, empty for none.
func typeOf(n *yaml.Node) string {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "type" {
			return n.Content[i+1].Value + ":"
		}
	}
	return ""
}
