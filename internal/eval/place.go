package eval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// Place is a value in the text of a document, which an optimization replaces. All other bytes of the text remain.
type Place struct {
	Address string // the id of an entity and a key of it
	Kind    string // the type of the entity, such as LLMInference; empty if it has none

	value  source.Span // empty if the document does not have the key
	column int         // of the key, from 1; 0 for a value in brackets
	insert insertion   // for a key that the document does not have
}

// insertion is where a key is inserted.
type insertion struct {
	file   *source.File
	at     int      // the byte offset
	flow   bool     // between brackets
	before bool     // before another key, not after one
	indent int      // spaces before the key
	keys   []string // the missing keys, outermost first
}

// Change is what is different in a document that an Opener reads.
type Change struct {
	Env   map[string]string    // variables that replace those of the environment
	Edit  func(*spec.Document) // changes the document before it is checked; may be nil
	Texts map[string][]byte    // texts of files in place of those on the disk, by path
}

// FindPlace finds the value that an address names in the documents of an application.
func FindPlace(app *spec.Application, address string) (*Place, error) {
	id, rest, dotted := strings.Cut(address, ".")
	keys := strings.Split(rest, ".")
	if !dotted || slices.Contains(keys, "") {
		return nil, fmt.Errorf("%q is not the id of a step, model, tool or index and a key, such as draft.system_message", address)
	}
	var named, having []found
	var ids []string
	seen := map[any]bool{}
	for _, d := range app.Documents() {
		eachEntity(reflect.ValueOf(d), seen, func(f found) {
			ids = append(ids, f.id)
			if f.id != id {
				return
			}
			named = append(named, f)
			if _, ok := f.at.Lookup(keys[0]); ok {
				having = append(having, f)
			}
		})
	}
	switch {
	case len(having) == 1:
		return having[0].place(address, keys)
	case len(named) == 1:
		return named[0].place(address, keys)
	case len(named) > 1:
		return nil, fmt.Errorf("several parts of the document have the id %q", id)
	}
	return nil, fmt.Errorf("no step, model, tool or index has the id %q%s", id, diag.DidYouMean(id, ids))
}

// found is an entity in the text of a document.
type found struct {
	id   string
	at   *spec.Position
	flow bool // between brackets
}

// eachEntity calls do for each entity with an id that a document declares, except for variables.
func eachEntity(v reflect.Value, seen map[any]bool, do func(found)) {
	switch v.Kind() {
	case reflect.Interface:
		eachEntity(v.Elem(), seen, do)
	case reflect.Pointer:
		if v.IsNil() || seen[v.Interface()] {
			return
		}
		seen[v.Interface()] = true
		if _, is := v.Interface().(*spec.Variable); is {
			return
		}
		if n, is := v.Interface().(spec.Node); is && n.Position() != nil {
			if id, ok := n.Position().Lookup("id"); ok {
				do(found{strings.Trim(textOf(id.Value), `"'`), n.Position(), inBrackets(n.Position().Value)})
			}
		}
		eachEntity(v.Elem(), seen, do)
	case reflect.Slice:
		for i := range v.Len() {
			eachEntity(v.Index(i), seen, do)
		}
	case reflect.Struct:
		if strings.HasPrefix(v.Type().Name(), "Ref[") {
			return // what a reference names is declared elsewhere
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachEntity(v.Field(i), seen, do)
			}
		}
	}
}

func inBrackets(s source.Span) bool {
	text := textOf(s)
	return strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")
}

// place returns the place of a value below the entity.
func (f found) place(address string, keys []string) (*Place, error) {
	p := &Place{Address: address}
	if kind, ok := f.at.Lookup("type"); ok {
		p.Kind = textOf(kind.Value)
	}
	at, flow := f.at, f.flow
	for i, key := range keys {
		next, ok := at.Lookup(key)
		if !ok {
			p.insert = insertionIn(at, flow, keys[i:])
			if p.insert.file == nil {
				return nil, fmt.Errorf("%s cannot have the key %s", strings.Join(append([]string{f.id}, keys[:i]...), "."), key)
			}
			return p, p.writable(p.insert.file)
		}
		if flow = flow || inBrackets(next.Value); i == len(keys)-1 {
			p.value = next.Value
			if !flow && next.Key.File == next.Value.File {
				p.column = next.Key.Start.Column
			}
			if whole, ok := next.Value.Text(); ok {
				p.value = whole
			}
		}
		at = next
	}
	switch {
	case strings.HasPrefix(textOf(p.value), "*"), p.value.File.IsShared(p.value):
		return nil, fmt.Errorf("%s is used elsewhere by an alias: write the value here", address)
	case strings.HasPrefix(textOf(p.value), "&"), strings.HasPrefix(textOf(p.value), "!"):
		return nil, fmt.Errorf("%s has an anchor or a tag, and cannot be replaced", address)
	}
	return p, p.writable(p.value.File)
}

func (p *Place) writable(f *source.File) error {
	if strings.Contains(f.Path, "://") {
		return fmt.Errorf("%s is in %s, which is not a local file", p.Address, f.Path)
	}
	return nil
}

// insertionIn returns where keys are inserted into a mapping: after its id, or before its first key.
func insertionIn(at *spec.Position, flow bool, keys []string) insertion {
	parts := slices.DeleteFunc(slices.Clone(at.Parts), func(p *spec.Position) bool { return p.Key.IsZero() || p.Key.File != at.Value.File })
	if len(parts) == 0 {
		return insertion{}
	}
	first := slices.MinFunc(parts, func(a, b *spec.Position) int { return source.Compare(a.Key, b.Key) })
	made := insertion{file: first.Key.File, at: offset(first.Key.File, first.Key.Start), flow: flow, before: true, indent: first.Key.Start.Column - 1, keys: keys}
	if id, ok := at.Lookup("id"); ok && id.Key.File == made.file && id.Value.File == made.file {
		made.before = false
		if made.at = offset(made.file, id.Value.End); !flow {
			if n := bytes.IndexByte(made.file.Text[made.at:], '\n'); n >= 0 {
				made.at += n
			} else {
				made.at = len(made.file.Text)
			}
		}
	}
	return made
}

// Text returns the text that the document has.
func (p *Place) Text() (string, error) {
	switch {
	case p.value.IsZero():
		return "", fmt.Errorf("the document does not have %s", p.Address)
	case p.isIncluded():
		return string(p.value.File.Text), nil
	}
	var holder struct {
		K yaml.Node `yaml:"k"`
	}
	if err := yaml.Unmarshal([]byte("k: "+textOf(p.value)), &holder); err != nil || holder.K.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("%s is not a text", p.Address)
	}
	switch text := holder.K.Value; {
	case strings.Contains(text, "${"):
		return "", fmt.Errorf("%s has a variable of the environment, which a rewritten text would lose", p.Address)
	case strings.TrimSpace(text) == "":
		return "", fmt.Errorf("%s is empty", p.Address)
	default:
		return text, nil
	}
}

// isIncluded reports whether the value is the text of an included file.
func (p *Place) isIncluded() bool {
	f := p.value.File
	if f == nil || f.From.IsZero() {
		return false
	}
	whole, ok := f.From.Text()
	return ok && whole.File == f
}

// File returns the file that has the value.
func (p *Place) File() *source.File {
	if p.value.IsZero() {
		return p.insert.file
	}
	return p.value.File
}

// edit is a replacement of bytes.
type edit struct {
	file       *source.File
	start, end int
	text       string
}

// Texts returns the texts of the files in which places have other values, by path.
func Texts(values map[*Place]any) (map[string][]byte, error) {
	var edits []edit
	for p, v := range values {
		made, err := p.edit(v)
		if err != nil {
			return nil, err
		}
		edits = append(edits, made)
	}
	slices.SortFunc(edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.file.Path, b.file.Path), cmp.Compare(b.start, a.start), cmp.Compare(a.text, b.text))
	})
	texts := map[string][]byte{}
	for _, e := range edits {
		text := texts[e.file.Path]
		if text == nil {
			text = e.file.Text
		}
		texts[e.file.Path] = slices.Concat(text[:e.start], []byte(e.text), text[e.end:])
	}
	return texts, nil
}

// edit returns what writes a value in the place.
func (p *Place) edit(v any) (edit, error) {
	text, isText := v.(string)
	if isText && !utf8.ValidString(text) || strings.Contains(text, "\x00") {
		return edit{}, errors.New("the text is not valid UTF-8")
	}
	if !p.value.IsZero() {
		e := edit{file: p.value.File, start: offset(p.value.File, p.value.Start), end: offset(p.value.File, p.value.End)}
		switch {
		case p.isIncluded():
			e.text = text
		case isText && p.column > 0 && p.endsLine(e.end):
			e.text = blockText(text, p.column+1)
		default:
			e.text = flowValue(v)
		}
		head, rest, _ := strings.Cut(string(e.file.Text[e.start:e.end]), "\n")
		if _, comment, ok := strings.Cut(head, " #"); ok && rest != "" && strings.ContainsAny(head[:1], "|>") {
			first, lines, more := strings.Cut(e.text, "\n")
			e.text = first + " #" + comment
			if more {
				e.text += "\n" + lines
			}
		}
		return e, nil
	}
	value, in := flowValue(v), p.insert
	for _, key := range slices.Backward(in.keys[1:]) {
		value = "{" + key + ": " + value + "}"
	}
	e := edit{file: in.file, start: in.at, end: in.at, text: in.keys[0] + ": " + value}
	switch space := strings.Repeat(" ", in.indent); {
	case in.flow && in.before:
		e.text += ", "
	case in.flow:
		e.text = ", " + e.text
	case in.before:
		e.text += "\n" + space
	default:
		e.text = "\n" + space + e.text
	}
	return e, nil
}

// endsLine reports whether nothing follows in the line, such as a comment, which a text of several lines would swallow.
func (p *Place) endsLine(end int) bool {
	rest, _, _ := bytes.Cut(p.value.File.Text[end:], []byte("\n"))
	return len(bytes.TrimSpace(rest)) == 0
}

// plainText matches texts that need no quotes in YAML.
var plainText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_/.-]*$`) })

// flowValue writes a value on one line.
func flowValue(v any) string {
	if text, ok := v.(string); ok && plainText().MatchString(text) {
		switch strings.ToLower(text) {
		case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		default:
			return text
		}
	} else if ok && strings.Contains(text, `"`) && !strings.ContainsFunc(text, func(r rune) bool { return r == '\'' || !unicode.IsPrint(r) }) {
		return "'" + text + "'"
	}
	text, err := textfmt.CompactJSON(v)
	if err != nil {
		text, _ = json.Marshal(fmt.Sprint(v)) // values of a document are JSON
	}
	return string(text)
}

// lineWidth is the number of characters from which on a line of a text is folded.
const lineWidth = 100

// blockText writes a text with lines that are indented: as a literal, or folded if it is one line.
func blockText(text string, indent int) string {
	body := strings.TrimSuffix(text, "\n")
	lines := strings.Split(body, "\n")
	odd := body == "" || strings.TrimSpace(lines[0]) != lines[0] || strings.HasSuffix(body, "\n") ||
		strings.ContainsFunc(body, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) || r == '\ufeff' }) ||
		slices.ContainsFunc(lines, func(l string) bool { return strings.TrimRight(l, " ") != l })
	switch {
	case odd, len(lines) == 1 && utf8.RuneCountInString(text) <= lineWidth:
		return flowValue(text)
	case len(lines) == 1 && !strings.Contains(body, "  "):
		lines = fold(body)
	}
	head := "|"
	if !strings.Contains(body, "\n") && len(lines) > 1 {
		head = ">"
	}
	if body == text {
		head += "-"
	}
	var b strings.Builder
	b.WriteString(head)
	for _, l := range lines {
		b.WriteByte('\n')
		if l != "" {
			b.WriteString(strings.Repeat(" ", indent) + l)
		}
	}
	return b.String()
}

// fold splits a line at spaces.
func fold(line string) (lines []string) {
	current := ""
	for word := range strings.SplitSeq(line, " ") {
		if current != "" && utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) > lineWidth {
			lines, current = append(lines, current), ""
		}
		if current != "" {
			current += " "
		}
		current += word
	}
	return append(lines, current)
}

// textOf returns the text of a span.
func textOf(s source.Span) string {
	if s.File == nil || s.Start.Line == 0 {
		return ""
	}
	start, end := offset(s.File, s.Start), offset(s.File, s.End)
	return string(s.File.Text[start:max(start, end)])
}

// offset returns the byte offset of a position.
func offset(f *source.File, p source.Pos) int {
	at := 0
	for range p.Line - 1 {
		n := bytes.IndexByte(f.Text[at:], '\n')
		if n < 0 {
			return len(f.Text)
		}
		at += n + 1
	}
	for column := 1; column < p.Column && at < len(f.Text); column++ {
		_, n := utf8.DecodeRune(f.Text[at:])
		at += n
	}
	return at
}
