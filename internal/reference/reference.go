// Package reference finds the text of the reference pages (docs/reference) about a type of the language, for
// `qtype explain`. The pages are generated from package spec, so that the terminal, the pages and the editor say
// the same.
package reference

import (
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/docs"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// folder is the folder of the pages in docs.
const folder = "reference"

// Entry is the section of a page about a type.
type Entry struct {
	Name    string   // such as Agent
	Title   string   // the title of the page, such as Steps
	Text    []string // paragraphs without markup, and lists, of which each item is one
	Keys    []Key    // in the order of the page
	Example string   // a part of a document, empty for none
	Option  string   // the key that selects one of Options, empty if there are none
	Options []Option
}

// Key is a key of a type.
type Key struct {
	Name        string
	Value       string   // what its value is: text, "id of a model", …
	Default     string   // as it is written in a document, empty for none
	Required    bool     // the key must be written
	Description []string // paragraphs, without markup
}

// Option is an implementation that a key selects, such as a splitter.
type Option struct {
	Names []string
	Text  []string
	Under string // the key whose value has Keys, empty if it has none
	Keys  []Key
}

// Entries returns all types, in the order of the pages' names.
var Entries = sync.OnceValue(func() []*Entry {
	var all []*Entry
	pages, _ := fs.Glob(docs.Files, folder+"/*.md") // the pattern is valid
	for _, page := range pages {
		text, _ := docs.Files.ReadFile(page) // it was listed
		all = append(all, parsePage(string(text))...)
	}
	return all
})

// Explain returns the text about a name: a type (Agent), a key of a type (Agent.tools), an implementation
// (DocumentSplitter.recursive), or a key or an implementation alone if only one type has it. Upper and lower case are the same.
// A name of a language can also be a type that the program adds.
func Explain(l *spec.Language, name string) (string, error) {
	entries := append(slices.Clip(Entries()), added(l)...)
	typeName, member, hasMember := strings.Cut(strings.TrimSpace(name), ".")
	if e := find(entries, typeName); e != nil {
		if !hasMember {
			return e.String(), nil
		}
		if text := e.member(member); text != "" {
			return text, nil
		}
		return "", fmt.Errorf("%s has no key %q%s", e.Name, member, diag.DidYouMean(member, e.members()))
	}
	var owners []*Entry
	for _, e := range entries {
		if !hasMember && e.member(typeName) != "" {
			owners = append(owners, e)
		}
	}
	switch len(owners) {
	case 0:
		return "", fmt.Errorf("no type and no key is named %q%s", typeName, diag.DidYouMean(typeName, Names()))
	case 1:
		return owners[0].member(typeName), nil
	}
	names := make([]string, len(owners))
	for i, e := range owners {
		names[i] = e.Name + "." + typeName
	}
	return "Several types have it:\n\n  " + strings.Join(names, "\n  ") + "\n", nil
}

// added returns the types that a program adds, with their own keys.
func added(l *spec.Language) (all []*Entry) {
	for _, c := range l.Cases() {
		t := reflect.TypeOf(c.New()).Elem()
		e := &Entry{Name: c.Tag, Title: "Added by this program"}
		for i := range t.NumField() {
			f := t.Field(i)
			standard, _ := f.Tag.Lookup("default")
			switch doc, key := f.Tag.Get("doc"), f.Tag.Get("yaml"); {
			case f.Anonymous && doc != "":
				e.Text = []string{doc, "It also has the keys of all types of its kind."}
			case key != "" && key != "-":
				e.Keys = append(e.Keys, Key{Name: key, Value: valueOf(f.Type), Default: standard, Required: f.Tag.Get("jsonschema") == "required", Description: []string{doc}})
			}
		}
		all = append(all, e)
	}
	return all
}

// valueOf describes the values of a key that a program adds.
func valueOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "list"
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[spec.Reference]()) {
		return "id"
	}
	return "mapping"
}

// Names returns the names of all types.
func Names() []string {
	names := make([]string, len(Entries()))
	for i, e := range Entries() {
		names[i] = e.Name
	}
	return names
}

// List returns the names of all types, with a paragraph for each page.
func List() string {
	var lines []string
	title := ""
	for _, e := range Entries() {
		if e.Title != title {
			title = e.Title
			lines = append(lines, title+": "+e.Name)
			continue
		}
		lines[len(lines)-1] += ", " + e.Name
	}
	return wrapAll("", lines)
}

func find(entries []*Entry, name string) *Entry {
	i := slices.IndexFunc(entries, func(e *Entry) bool { return strings.EqualFold(e.Name, name) })
	if i < 0 {
		return nil
	}
	return entries[i]
}

// member returns the text about a key or an implementation of the type, empty if it has none of the name.
func (e *Entry) member(name string) string {
	for _, k := range e.Keys {
		if strings.EqualFold(k.Name, name) {
			return e.Name + "." + k.Name + "\n\n" + k.text()
		}
	}
	for _, o := range e.Options {
		if slices.ContainsFunc(o.Names, func(n string) bool { return strings.EqualFold(n, name) }) {
			return fmt.Sprintf("%s with %s: %s\n\n%s", e.Name, e.Option, o.Names[0], o.text())
		}
		for _, k := range o.Keys {
			if strings.EqualFold(k.Name, name) {
				return fmt.Sprintf("%s.%s.%s, with %s: %s\n\n%s", e.Name, o.Under, k.Name, e.Option, o.Names[0], k.text())
			}
		}
	}
	return ""
}

// members returns the names that member knows.
func (e *Entry) members() []string {
	var names []string
	for _, k := range e.Keys {
		names = append(names, k.Name)
	}
	for _, o := range e.Options {
		names = append(names, o.Names...)
		for _, k := range o.Keys {
			names = append(names, k.Name)
		}
	}
	return names
}

// parsePage returns the entries of a page, as package docgen writes it.
func parsePage(text string) []*Entry {
	var all []*Entry
	title := ""
	for i, part := range strings.Split("\n"+text, "\n## ") {
		if i == 0 {
			title, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(part), "# "), "\n")
			continue
		}
		name, body, _ := strings.Cut(part, "\n")
		e := &Entry{Name: name, Title: title}
		e.parse(body)
		all = append(all, e)
	}
	return all
}

// parse reads the text below the heading.
func (e *Entry) parse(body string) {
	body, example, hasExample := strings.Cut(body, "\n```yaml")
	rest := ""
	if hasExample {
		_, example, _ = strings.Cut(example, "\n") // the rest of the line of the fence
		example, rest, _ = strings.Cut(example, "\n```")
		e.Example = example
	}
	e.Text, e.Keys, _ = parseBlocks(body)
	parts := strings.Split(rest, "\n### ")
	e.Option = plainText(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(parts[0]), "The values of "), ":"))
	for _, part := range parts[1:] {
		names, text, _ := strings.Cut(part, "\n")
		o := Option{Names: strings.Split(plainText(names), ", ")}
		o.Text, o.Keys, o.Under = parseBlocks(text)
		e.Options = append(e.Options, o)
	}
}

// parseBlocks returns the paragraphs and the keys of a part, and whose value has the keys: empty for the type itself.
func parseBlocks(body string) (paragraphs []string, keys []Key, under string) {
	for line := range strings.SplitSeq(body, "\n") {
		switch cells := cellsOf(line); {
		case len(cells) == 4 && strings.HasPrefix(cells[0], "Key"):
			under = plainText(strings.TrimPrefix(strings.TrimPrefix(cells[0], "Key"), " of "))
		case len(cells) == 4 && !strings.HasPrefix(cells[0], "---"):
			keys = append(keys, parseKey(cells))
		case len(cells) == 0 && line != "":
			paragraphs = append(paragraphs, plainText(line))
		}
	}
	return paragraphs, keys, under
}

// parseKey reads the cells of a row: key, value, default and description.
func parseKey(cells []string) Key {
	k := Key{Name: plainText(cells[0]), Value: plainText(cells[1]), Required: cells[2] == "**required**"}
	if !k.Required {
		k.Default = plainText(cells[2])
	}
	for paragraph := range strings.SplitSeq(cells[3], "<br>") {
		if text := plainText(paragraph); text != "" {
			k.Description = append(k.Description, text)
		}
	}
	return k
}

// cellsOf returns the cells of a row of a table, nil for other lines.
func cellsOf(line string) []string {
	if !strings.HasPrefix(line, "| ") || !strings.HasSuffix(line, "|") {
		return nil
	}
	const bar = "\x00" // a | within a cell
	cells := strings.Split(strings.ReplaceAll(line[1:len(line)-1], `\|`, bar), "|")
	for i, c := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(c, bar, "|"))
	}
	return cells
}

// link matches a link of Markdown; a bracket that the text has is escaped.
var link = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(^|[^\\])\[((?:[^\]\\]|\\.)*)\]\([^)]*\)`) })

// plainText returns Markdown without its markup.
func plainText(text string) string {
	text = link().ReplaceAllString(text, "$1$2")
	text = strings.NewReplacer(`\\`, `\`, `\*`, `*`, `\[`, `[`, "&lt;", "<", "`", "").Replace(text)
	return strings.TrimSpace(text)
}

const (
	width  = 100 // columns of a line
	indent = "  "
)

// String returns the description of the type: what it is, its keys and an example.
func (e *Entry) String() string {
	var b strings.Builder
	b.WriteString(e.Name + "\n\n")
	for i, paragraph := range e.Text {
		if i == 1 {
			b.WriteString("\n")
		}
		b.WriteString(wrapAll("", []string{paragraph}))
	}
	if len(e.Keys) > 0 {
		b.WriteString("\nKeys:\n\n")
	}
	for _, k := range e.Keys {
		b.WriteString(indent + k.Name + " (" + k.value() + ")\n" + wrapAll(indent+indent, k.Description))
	}
	if e.Example != "" {
		b.WriteString("\nExample:\n\n" + indented(e.Example, indent+indent) + "\n")
	}
	if e.Option != "" {
		b.WriteString("\nThe values of " + e.Option + ":\n")
	}
	for _, o := range e.Options {
		b.WriteString("\n" + indent + strings.Join(o.Names, ", ") + "\n" + indented(o.text(), indent))
	}
	return b.String()
}

// value returns what the value of a key is, and whether it must be written.
func (k *Key) value() string {
	switch {
	case k.Required:
		return k.Value + "; required"
	case k.Default != "":
		return k.Value + "; default " + k.Default
	}
	return k.Value
}

// text returns the description of a key that is explained alone.
func (k *Key) text() string {
	return strings.ToUpper(k.Value[:1]) + k.value()[1:] + ".\n\n" + wrapAll("", k.Description)
}

// text returns what an implementation is, and its keys.
func (o *Option) text() string {
	var b strings.Builder
	b.WriteString(wrapAll(indent, o.Text))
	if len(o.Keys) > 0 {
		b.WriteString("\n" + indent + "Keys of " + o.Under + ":\n\n")
	}
	for _, k := range o.Keys {
		b.WriteString(indent + indent + k.Name + " (" + k.value() + ")\n" + wrapAll(indent+indent+indent, k.Description))
	}
	return b.String()
}

// indented returns lines with a prefix; empty lines remain empty.
func indented(text, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString(prefix)
		}
		b.WriteString(line)
	}
	return b.String()
}

// wrapAll returns paragraphs with lines of at most width columns, each of which begins with a prefix.
func wrapAll(prefix string, paragraphs []string) string {
	var b strings.Builder
	for _, p := range paragraphs {
		b.WriteString(textfmt.Wrap(p, width, prefix, prefix))
	}
	return b.String()
}
