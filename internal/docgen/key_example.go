package docgen

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/qtype-dev/qtype/internal/schemagen"
	"github.com/qtype-dev/qtype/spec"
)

// maxKeyExample is the length of an example of one key; longer ones are not shown.
const maxKeyExample = 90

// keyExamples has a value of each key that a document contains, by the
// struct that declares the key.
type keyExamples map[reflect.Type]map[string]string

// readKeyDocuments adds the values of the documents that show what no other one does.
func readKeyDocuments(ctx context.Context, root string, all samples, keys keyExamples) error {
	files, err := filepath.Glob(filepath.Join(root, "internal", "docgen", "testdata", "*.qtype*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		rest := samples{}
		if err := rest.collectFile(ctx, file, keys); err != nil {
			return err
		}
		for t, text := range rest {
			if all[t] == "" {
				all[t] = text
			}
		}
	}
	return nil
}

// add keeps the values of the keys of a node that fit in a line, if none was kept before.
func (k keyExamples) add(n spec.Node) {
	for _, f := range schemagen.Fields(reflect.TypeOf(n).Elem()) {
		t := f.Owner
		if k[t] == nil {
			k[t] = map[string]string{}
		}
		place, ok := n.Position().Lookup(f.Key)
		if !ok || k[t][f.Key] != "" {
			continue
		}
		text := strings.Trim(excerpt(place.Span()), " ")
		if text != "" && len(text) <= maxKeyExample && !strings.ContainsAny(text, "\n`") {
			k[t][f.Key] = text
		}
	}
}

// exampleOf returns the example of a key in the description of a struct: that of its
// declaration, or one of a document, unless the example of the struct contains the key.
func (g *generator) exampleOf(t reflect.Type, f schemagen.Field) string {
	if text := f.Tag.Get("example"); text != "" {
		return " Example: `" + text + "`."
	}
	text := g.keys[f.Owner][f.Key]
	if text == "" || hasKey(g.sampleOf(t), f.Key) {
		return ""
	}
	return " Example: `" + f.Key + ": " + text + "`."
}

// sampleOf returns the example of a struct.
func (g *generator) sampleOf(t reflect.Type) string {
	if g.samples[t] == "" {
		return synthesize(t)
	}
	return g.samples[t]
}

// hasKey reports whether a text in YAML contains a key.
func hasKey(text, key string) bool {
	for rest := text; ; {
		_, after, ok := strings.Cut(rest, key+":")
		if !ok {
			return false
		}
		before := rest[:len(rest)-len(after)-len(key)-1]
		if before == "" || strings.ContainsAny(before[len(before)-1:], " {\n-") {
			return true
		}
		rest = after
	}
}
