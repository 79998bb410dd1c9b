package loader

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"unicode"
	"unicode/utf16"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// Value is a value of a YAML or JSON file of another system. Aliases and merge keys
// are resolved; an alias shares the value of its target.
type Value struct {
	Kind  string      // null, boolean, integer, float, text, list, mapping; empty for an invalid value, which was reported
	Text  string      // a scalar's text
	Span  source.Span // the position of the value
	Items []*Value    // of a list
	Pairs []ValuePair // of a mapping; the last of equal keys
}

// ValuePair is a key and its value.
type ValuePair struct {
	Key   string      // the key's text
	At    source.Span // the position of the key
	Value *Value      // the value of the key
}

// LoadValue reads a file of another system with the limits and messages of documents.
// It does not expand environment variables or follow includes. The value is nil if
// the file cannot be read or is not YAML.
func LoadValue(ctx context.Context, path string, opts Options) (*Value, *source.File, diag.List) {
	f, file, list := loadText(ctx, path, opts)
	defer f.remote.close()
	if list != nil {
		return nil, file, list
	}
	f.noIncludes, f.verbatim = true, true
	file.Text = joinSurrogates(file.Text)
	f.files = append(f.files, file)
	root := (&builder{loadState: f, file: file, path: path}).buildRoot()
	hideTexts(root)
	f.diags.list.Sort()
	if root.kind == broken {
		return nil, file, f.diags.list
	}
	return root.plain(map[*node]*Value{}), file, f.diags.list
}

// LoadText reads a file that is not YAML, with the limits and messages of documents. The
// list is empty if the file has been read.
func LoadText(ctx context.Context, path string, opts Options) (*source.File, diag.List) {
	f, file, list := loadText(ctx, path, opts)
	f.remote.close()
	return file, list
}

// loadText reads a file. The caller closes the remote part of the state.
func loadText(ctx context.Context, path string, opts Options) (*loadState, *source.File, diag.List) {
	opts.NoDotEnv = true
	f := newLoadState(ctx, opts, filepath.Dir(path))
	file, problem := f.readFirst(path)
	if problem != nil {
		return f, file, diag.List{problem.diagnostic(file)}
	}
	return f, file, nil
}

// hideTexts hides texts whose keys look like secrets; numbers such as maxTokens are not hidden.
func hideTexts(n *node) {
	for _, item := range n.items {
		hideTexts(item)
	}
	for _, p := range n.pairs {
		if p.value.kind == text && redact.NamesSecret(p.key.text) {
			hideValue(p.value)
		}
		hideTexts(p.value)
	}
}

// plain converts the node to a Value; shared nodes stay shared.
func (n *node) plain(made map[*node]*Value) *Value {
	if v := made[n]; v != nil {
		return v
	}
	names := [...]string{broken: "", null: "null", boolean: "boolean", integer: "integer", float: "float", text: "text", sequence: "list", mapping: "mapping"}
	v := &Value{Kind: names[n.kind], Text: n.text, Span: n.span}
	made[n] = v
	for _, item := range n.items {
		v.Items = append(v.Items, item.plain(made))
	}
	for _, p := range n.pairs {
		v.Pairs = append(v.Pairs, ValuePair{Key: p.key.text, At: p.key.span, Value: p.value.plain(made)})
	}
	return v
}

// joinSurrogates replaces pairs of surrogates in a JSON file, such as \ud83d\ude00, by the
// escape sequence of YAML for the character, which has no pairs.
func joinSurrogates(text []byte) []byte {
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' {
		return text
	}
	var out []byte
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+1 >= len(text) {
			return append(out, text...)
		}
		out, text = append(out, text[:i]...), text[i:]
		high, low := escapeAt(text), rune(0)
		length := 2 // of another escape sequence
		if high != 0 {
			low = escapeAt(text[len(`\uffff`):])
		}
		if r := utf16.DecodeRune(high, low); r != unicode.ReplacementChar {
			length = 2 * len(`\uffff`)
			out = fmt.Appendf(out, `\U%08x`, r)
		} else {
			out = append(out, text[:length]...)
		}
		text = text[length:]
	}
}

// escapeAt returns the number of the escape sequence \uXXXX that a text begins with, 0 for
// none.
func escapeAt(text []byte) rune {
	if len(text) < len(`\uffff`) || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(text[2:len(`\uffff`)]), 16, 32)
	if err != nil {
		return 0
	}
	return rune(n)
}
