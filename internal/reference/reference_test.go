package reference_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/reference"
	"github.com/qtype-dev/qtype/spec"
)

// TestExplain_EveryType: each type of a union, each of its keys and each implementation can be explained, and
// no markup of the pages is left.
func TestExplain_EveryType(t *testing.T) {
	for _, u := range spec.Unions() {
		for _, c := range u.Cases {
			if !slices.Contains(reference.Names(), c.Tag) && c.Tag != "" {
				t.Errorf("%s %s is missing", u.Name, c.Tag)
			}
		}
	}
	keys := 0
	for _, e := range reference.Entries() {
		names := []string{e.Name}
		for _, k := range e.Keys {
			keys++
			names = append(names, e.Name+"."+k.Name)
			if k.Value == "" || len(k.Description) == 0 {
				t.Errorf("%s.%s has no value or description: %+v", e.Name, k.Name, k)
			}
		}
		for _, o := range e.Options {
			names = append(names, e.Name+"."+o.Names[0])
			if o.Under == "" && len(o.Keys) > 0 || e.Option == "" {
				t.Errorf("%s.%s: %+v", e.Name, o.Names[0], o)
			}
		}
		for _, name := range names {
			text, err := reference.Explain(nil, name)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, markup := range []string{"](", "<br>", "**required", "```", `\|`, "&lt;"} {
				if strings.Contains(text, markup) {
					t.Errorf("%s has markup %q:\n%s", name, markup, text)
				}
			}
		}
	}
	if fields := reflect.TypeFor[spec.Memory]().NumField(); keys < 10*fields {
		t.Errorf("only %d keys were found", keys)
	}
}

// TestExplain_Width: descriptions have lines of at most 100 columns.
func TestExplain_Width(t *testing.T) {
	for _, e := range reference.Entries() {
		text, _, _ := strings.Cut(e.String(), "\nExample:")
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(line) - 1; n > 100 && !strings.HasSuffix(line, ")\n") { // a key with its value is one line
				t.Errorf("%s: a line has %d columns: %s", e.Name, n, line)
			}
		}
	}
}

// TestExplain_Names: names have any case, a key or implementation may be written without its type, and an
// unknown name is an error with the nearest one.
func TestExplain_Names(t *testing.T) {
	for name, want := range map[string]string{
		"memory.TTL":                 "Memory.ttl\n\nDuration, such as 30s, greater than 0.\n\nHow long an unused session is kept",
		"token_limit":                "Memory.token_limit\n\nInteger, greater than 0; default 100000.\n\nFor the policy flush",
		"CodeSplitter":               "DocumentSplitter with splitter_name: CodeSplitter\n\n",
		"DocumentSplitter.recursive": "DocumentSplitter with splitter_name: recursive\n\n",
		"ttl":                        "Several types have it:\n\n  Memory.ttl\n  CacheConfig.ttl\n",
		"Agent":                      "Agent\n\nCalls a chat model that may call tools until it has the answer.\n\n- Inputs: exactly 1 (QT324)\n",
		"vectorindex.qdrant":         "VectorIndex with module: qdrant\n\n",
	} {
		got, err := reference.Explain(nil, name)
		if err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"Agnt":             `no type and no key is named "Agnt"; did you mean "Agent"?`,
		"Memory.tokn_limt": `Memory has no key "tokn_limt"; did you mean "token_limit"?`,
		"":                 `no type and no key is named ""`,
		".":                `no type and no key is named ""`,
		"Nothing.at.all":   `no type and no key is named "Nothing"`,
	} {
		if _, err := reference.Explain(nil, name); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", name, err, want)
		}
	}
}
