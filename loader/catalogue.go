package loader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// CatalogueFile is the name of a user's rows of the catalogue of models, next to the document.
const CatalogueFile = "models.yaml"

// CatalogueVariable is the environment variable that names a file of rows. It is read from
// the process only: a .env file belongs to the document.
const CatalogueVariable = "QTYPE_MODELS"

// catalogueKey is the key of such a file. A models.yaml without it is a part of a document.
const catalogueKey = "catalogue"

// Catalogue returns the catalogue of models with the rows of the user: rows of the file, if
// there is one, precede rows of the file in QTYPE_MODELS.
func Catalogue(ctx context.Context, path string, opts Options) (*catalogue.Catalogue, diag.List) {
	f := newLoadState(ctx, opts, ".")
	defer f.remote.close()
	var rows *catalogue.Catalogue
	for _, file := range f.catalogueFiles(path) {
		rows = f.readCatalogue(file, rows)
	}
	f.diags.list.Sort()
	return rows, f.diags.list
}

// setCatalogue sets what the document does not say of its models: the catalogue, in which the
// rows of the user precede the built-in ones, the names of Options.Models, and the server that the
// environment names.
func (f *loadState) setCatalogue(document *spec.Document, path string) {
	var models []spec.ModelEntity
	var rankers []spec.ChargedRanker
	for _, d := range document.Documents() {
		models = append(models, d.Models...)
		if d.Application != nil {
			rankers = append(rankers, chargedRankers(d.Application.Flows)...)
		}
	}
	if len(models)+len(rankers) == 0 {
		return
	}
	var rows *catalogue.Catalogue
	for _, file := range f.catalogueFiles(path) {
		rows = f.readCatalogue(file, rows)
	}
	for _, s := range rankers {
		s.SetCatalogue(rows)
	}
	for _, e := range models {
		m := e.Base()
		m.Catalogue = rows
		if name, ok := f.opts.Models[m.ID]; ok {
			f.replaceModel(m, name)
		}
		m.Elsewhere = f.serverOf(m)
	}
}

// chargedRankers lists the steps of flows that call a model of a service.
func chargedRankers(flows []*spec.Flow) (rankers []spec.ChargedRanker) {
	for _, f := range flows {
		for _, item := range f.Steps {
			if s, ok := item.Step.(spec.ChargedRanker); ok {
				rankers = append(rankers, s)
			}
		}
	}
	return rankers
}

// replaceModel gives a model another name, or PROVIDER/NAME.
func (f *loadState) replaceModel(m *spec.Model, name string) {
	m.ModelID = name
	if provider, rest, ok := strings.Cut(name, "/"); ok {
		if _, known := f.language.Provider(provider); known {
			m.ModelID = rest
			if provider != m.Provider { // the address and the protocol are those of the old one
				m.Provider, m.BaseURL, m.API, m.Deployment, m.APIVersion = provider, "", "", "", ""
				f.language.Link(m)
			}
		}
	}
}

// serverOf returns the address that a variable of the environment has for the server of a model,
// empty for none.
func (f *loadState) serverOf(m *spec.Model) string {
	row, ok := m.ProviderRow()
	if !ok || m.BaseURL != "" {
		return ""
	}
	for _, name := range []string{row.BaseURLEnv, row.BaseURLOldEnv} {
		if name != "" {
			if address, _ := f.lookup(name); address != "" {
				return address
			}
		}
	}
	return ""
}

// catalogueFile is a file of rows.
type catalogueFile struct {
	path  string
	named bool // by the variable; then it must exist and have the key
}

// catalogueFiles lists the files of rows, the weakest first. A restricted document must not
// change what its calls may cost, so the file next to it is not read.
func (f *loadState) catalogueFiles(path string) []catalogueFile {
	var files []catalogueFile
	if named := os.Getenv(CatalogueVariable); named != "" {
		files = append(files, catalogueFile{named, true})
	}
	_, remote := remotefs.Remote(path)
	if remote || f.noIncludes || f.opts.Policy.Restricted() {
		return files
	}
	return append(files, catalogueFile{filepath.Join(filepath.Dir(path), CatalogueFile), false})
}

// readCatalogue adds the rows of a file to those of below. Errors are diagnostics.
func (f *loadState) readCatalogue(from catalogueFile, below *catalogue.Catalogue) *catalogue.Catalogue {
	if _, err := os.Lstat(from.path); !from.named && errors.Is(err, fs.ErrNotExist) {
		return below // before a policy decides on a file that is not there
	}
	file := &source.File{Path: f.name(from.path)}
	content, problem := f.readRows(from)
	if problem != nil {
		f.diags.add(ruleCatalogue.At(source.Span{File: file}, "%s %s", file.Path, problem.text))
		return below
	}
	file.Text = content
	if !from.named && f.isPart(file) {
		return below
	}
	foreign := !from.named && !bytes.Contains(content, []byte(catalogueKey)) && !bytes.Contains(content, []byte("provider"))
	if foreign { // such as a template of another program
		f.diags.muted++
	}
	tree := (&builder{loadState: f, file: file, path: from.path}).buildRoot()
	if foreign {
		f.diags.muted--
	}
	list := tree.get(catalogueKey)
	if list == nil {
		if tree.kind != broken {
			f.diags.add(withoutRows(tree, file, from.named)...)
		}
		return below
	}
	f.files = append(f.files, file)
	for _, p := range tree.pairs {
		if p.key.text != catalogueKey {
			f.diags.add(ruleCatalogue.At(p.key.span, "the key %q is not read: %s has only %s", p.key.shown(), file.Path, catalogueKey).WithSeverity(diag.Warning))
		}
	}
	if list.kind != sequence {
		f.diags.add(ruleCatalogue.At(list.head(), "%s must be a list of rows, not %s", catalogueKey, list.kind.noun()))
		return below
	}
	return catalogue.New(f.catalogueRows(list), below)
}

// isPart reports whether the document includes a file.
func (f *loadState) isPart(file *source.File) bool {
	return slices.ContainsFunc(f.files, func(read *source.File) bool { return read.Path == file.Path })
}

// withoutRows returns what is wrong with a file that does not have the key of rows; nothing for one next to a
// document that is empty, or seems to be a part of a document or a file of another program.
func withoutRows(tree *node, file *source.File, named bool) diag.List {
	found := ruleCatalogue.At(tree.head(), "%s has no key %q", file.Path, catalogueKey)
	switch {
	case tree.kind != mapping && tree.kind != sequence && tree.kind != null:
		found = ruleCatalogue.At(tree.head(), "%s must have the key %q with a list of rows, and is %s", file.Path, catalogueKey, tree.kind.noun())
	case named || isRow(tree):
	case tree.kind == null, len(tree.items)+len(tree.pairs) == 0, tree.kind == sequence && slices.ContainsFunc(tree.items, func(item *node) bool { return item.get("type") != nil }):
		return nil
	case tree.kind == mapping:
		if len(tree.pairs) != 1 || !slices.ContainsFunc(tree.pairs[0].value.items, isRow) {
			return nil
		}
		found = found.WithSeverity(diag.Warning) // another program may read it
	}
	return diag.List{found.WithHint("write the rows below %s:", catalogueKey)}
}

// catalogueRows decodes the rows of a list.
func (f *loadState) catalogueRows(list *node) []catalogue.Model {
	var rows []catalogue.Model
	seen := map[[3]string]bool{}
	for _, item := range list.items {
		row, problems := rowOf(item)
		if len(problems) > 0 {
			f.diags.list.Add(problems...)
			continue
		}
		name := [3]string{row.Provider, strings.ToLower(row.ID), row.BaseURL}
		if seen[name] {
			f.diags.add(ruleCatalogue.At(item.head(), "another row has the provider %s and the id %s; remove one of them", row.Provider, row.ID))
		}
		seen[name] = true
		if !f.isProvider(row.Provider) && row.BaseURL == "" {
			found := ruleCatalogue.At(item.get("provider").head(), "no model has the provider %q, so the row has no effect", row.Provider).
				WithSeverity(diag.Warning).WithNearest(row.Provider, f.providerNames())
			if found.Suggestion == "" {
				found = found.WithHint("write a provider of docs/models.md, or a base_url in the row")
			}
			f.diags.add(found)
		}
		rows = append(rows, row)
	}
	return rows
}

// isProvider reports whether models can be of a provider of the catalogue: one of a document, or
// of the built-in rows, whose servers are known by their addresses.
func (f *loadState) isProvider(name string) bool {
	_, known := f.language.Provider(name)
	return known || (*catalogue.Catalogue)(nil).HasProvider(name)
}

// providerNames lists the providers of documents, and the hosts that the catalogue knows.
func (f *loadState) providerNames() (names []string) {
	for _, p := range f.language.Providers() {
		names = append(names, p.Name)
	}
	for _, s := range catalogue.Servers() {
		names = append(names, s.Provider)
	}
	return names
}

// isRow reports whether a value seems to be a row: it has a provider and an id, and is not a model of a document.
func isRow(item *node) bool {
	return item.kind == mapping && item.get("provider") != nil && item.get("id") != nil && item.get("type") == nil
}

// readRows reads a file of rows. What the user names, no policy limits.
func (f *loadState) readRows(from catalogueFile) ([]byte, *readError) {
	if !from.named {
		return f.read(from.path, "")
	}
	in, err := openRegular(from.path, os.Stat, func() (*os.File, error) { return os.Open(from.path) })
	if err != nil {
		return nil, asReadError(err)
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, int64(f.opts.Limits.FileBytes)+1))
	if err != nil {
		return nil, asReadError(err)
	}
	return f.accept(text)
}

// catalogueRow checks a row against the fields of catalogue.Model before it is decoded, so that each
// problem has its place.
type catalogueRow struct{ problems diag.List }

// rowOf decodes a row. It is not complete if there are problems.
func rowOf(n *node) (catalogue.Model, diag.List) {
	var c catalogueRow
	c.check(n, reflect.TypeFor[catalogue.Model](), "")
	if len(c.problems) > 0 {
		return catalogue.Model{}, c.problems
	}
	var text bytes.Buffer
	writeJSON(&text, n)
	row := catalogue.Model{Given: text.Bytes()}
	if err := json.Unmarshal(text.Bytes(), &row); err != nil {
		c.add(n.head(), "%s", strings.TrimPrefix(err.Error(), "json: "))
		return row, c.problems
	}
	if key, problem := row.Problem(); key != "" {
		c.add(placeOfKey(n, key), "%s", problem)
	}
	return row, c.problems
}

// add adds a problem.
func (c *catalogueRow) add(at source.Span, format string, args ...any) {
	c.problems.Add(ruleCatalogue.At(at, format, args...))
}

// check compares a value with the type of a field; path is its keys with dots, empty for the row.
func (c *catalogueRow) check(n *node, t reflect.Type, path string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	wants, fits := wantedKind(t)
	name := path
	if name == "" {
		name = "a row"
	}
	switch {
	case n.kind == broken: // reported
		c.problems.Add(ruleCatalogue.At(n.head(), "%s cannot be read", name))
	case n.kind == null && path != "":
		c.problems.Add(ruleCatalogue.At(n.head(), "%s has no value", name).WithHint("remove the key, or write %s", wants))
	case !slices.Contains(fits, n.kind):
		c.add(n.head(), "%s must be %s, not %s", name, wants, n.kind.noun())
	case n.kind == mapping && t.Kind() == reflect.Struct:
		c.checkKeys(n, t, path)
	case n.kind == mapping:
		for _, p := range n.pairs {
			c.check(p.value, t.Elem(), joinKeys(path, p.key.text))
		}
	case n.kind == sequence:
		for i, item := range n.items {
			c.check(item, t.Elem(), joinKeys(path, strconv.Itoa(i)))
		}
	case t.Kind() == reflect.Int || t.Kind() == reflect.Float64:
		c.checkNumber(n, t, name)
	}
}

// checkKeys compares the keys of a mapping with the fields of a struct.
func (c *catalogueRow) checkKeys(n *node, t reflect.Type, path string) {
	fields := map[string]reflect.Type{}
	jsonFields(t, fields)
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, p := range n.pairs {
		if field, ok := fields[p.key.text]; ok {
			c.check(p.value, field, joinKeys(path, p.key.text))
			continue
		}
		owner := "a row of the catalogue"
		if path != "" {
			owner = path
		}
		c.problems.Add(ruleCatalogue.At(p.key.span, "%s has no key %q", owner, p.key.shown()).WithNearest(p.key.text, names))
	}
}

// checkNumber checks that a number is one of JSON, and not negative.
func (c *catalogueRow) checkNumber(n *node, t reflect.Type, name string) {
	const largest = 1 << 53 // that a number of JSON has exactly
	digits := strings.ReplaceAll(n.text, "_", "")
	number, err := strconv.ParseFloat(digits, 64)
	invalid := err != nil || math.IsInf(number, 0) || math.IsNaN(number) || n.kind == integer && !json.Valid([]byte(digits)) // of another base
	if invalid || t.Kind() == reflect.Int && (n.kind == float || number > largest) {
		wants, _ := wantedKind(t)
		c.add(n.head(), "%s must be %s, not %s", name, wants, n.shown())
		return
	}
	if number < 0 {
		c.add(n.head(), "%s cannot be negative", name)
	}
}

// wantedKind returns what a value of a type must be, for messages, and the kinds of values that are.
func wantedKind(t reflect.Type) (string, []kind) {
	switch {
	case t == reflect.TypeFor[catalogue.Answer](), t.Kind() == reflect.Bool:
		return "true or false", []kind{boolean}
	case t.Kind() == reflect.Int:
		return "a whole number", []kind{integer, float}
	case t.Kind() == reflect.Float64:
		return "a number", []kind{integer, float}
	case t.Kind() == reflect.Slice:
		return "a list", []kind{sequence}
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Map:
		return "a mapping", []kind{mapping}
	}
	return "a text", []kind{text}
}

// jsonFields adds the types of the fields of a struct by their names in JSON.
func jsonFields(t reflect.Type, to map[string]reflect.Type) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous:
			jsonFields(field.Type, to)
		case name != "" && name != "-":
			to[name] = field.Type
		}
	}
}

// joinKeys adds a key to a path.
func joinKeys(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// placeOfKey returns the place of a value by its path, or of the value around it if it is absent.
func placeOfKey(n *node, path string) source.Span {
	at := n
	for _, key := range strings.Split(path, ".") {
		i, err := strconv.Atoi(key)
		switch next := at.get(key); {
		case next != nil:
			at = next
		case err == nil && at.kind == sequence && i < len(at.items):
			at = at.items[i]
		default:
			return at.head()
		}
	}
	return at.head()
}

// writeJSON writes a value as JSON.
func writeJSON(w *bytes.Buffer, n *node) {
	switch n.kind {
	case mapping:
		w.WriteByte('{')
		for i, p := range n.pairs {
			if i > 0 {
				w.WriteByte(',')
			}
			writeText(w, p.key.text)
			w.WriteByte(':')
			writeJSON(w, p.value)
		}
		w.WriteByte('}')
	case sequence:
		w.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				w.WriteByte(',')
			}
			writeJSON(w, item)
		}
		w.WriteByte(']')
	case null, broken:
		w.WriteString("null")
	case boolean:
		w.WriteString(strconv.FormatBool(slices.Contains([]string{"true", "yes", "on", "y"}, strings.ToLower(n.text))))
	case integer, float:
		number, _ := strconv.ParseFloat(strings.ReplaceAll(n.text, "_", ""), 64) // checked
		fmt.Fprint(w, strconv.FormatFloat(number, 'f', -1, 64))
	default:
		writeText(w, n.text)
	}
}

// writeText writes a text as JSON.
func writeText(w *bytes.Buffer, text string) {
	encoded, _ := json.Marshal(text) // a text has a JSON form
	w.Write(encoded)
}
