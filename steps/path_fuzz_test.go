package steps

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/jsonpath"
	"github.com/qtype-dev/qtype/spec/value"
)

// No path panics, neither when it is parsed nor when it is evaluated; errors are one line.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"$.items[*].name", "$..price", "$.items[?(@.price > 1)].name", "items[-1]", "$.items[0,2]", "$['a']", "$[1:2:1]", "$.a + $.b", "$[?", "$.items[?length(@.name) > 1]", "`len`"} {
		f.Add(seed)
	}
	doc, err := value.Parse(`{"items":[{"name":"a","price":1.5},{"name":"b","price":2}],"a":{"b":[1,null,true]}}`)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, err := jsonpath.Parse(text)
		if err != nil {
			if strings.Contains(err.Error(), "goroutine") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		_ = guarded(func() { _, _ = path.Find(wrapValue(doc), inOrder) })
	})
}

// guarded runs f as the engine does: a panic of the library fails one row.
func guarded(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}
