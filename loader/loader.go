// Package loader decodes the text of a document into spec values with positions: it
// reads the file and its includes, expands environment variables, and decodes the
// syntax tree by the tags of package spec. It reports all errors of form in one pass;
// package validate checks what the parts mean together.
package loader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// Options change how a document is loaded. The zero value is right for a local file.
type Options struct {
	// Lookup returns an environment variable; the default is os.LookupEnv. Variables
	// that it does not have are read from the file .env in the document's folder,
	// then in the current folder.
	Lookup func(name string) (value string, found bool)
	// NoDotEnv ignores .env files.
	NoDotEnv bool
	// Strict makes an unset ${NAME} without a default an error (QT005) instead of a
	// warning. In both cases a text keeps the ${NAME}, and a number, a reference or a
	// type with one is treated as absent, so that later checks report no consequences.
	Strict bool
	// Confine is the only folder from which includes may read, symbolic links
	// resolved; empty for no limit. Without it a document loaded from bytes cannot
	// include files. A remote document includes only addresses below its own.
	Confine string
	// Offline rejects remote files.
	Offline bool
	// Open replaces the operating system for reading files; Confine does not apply to
	// it. If it returns neither a reader nor an error, the file is read as usual.
	Open func(ctx context.Context, path string) (io.ReadCloser, error)
	// Fetch replaces the loader's client for remote files. It is called only for files
	// that the document may read. Redirects must stay below base, unless it is empty.
	// The method Reason of an error, or its text, is shown to the user.
	Fetch func(ctx context.Context, address, base string) ([]byte, error)
	// Limits bound the resources that a document may use.
	Limits Limits
	// Policy is what the document may reach: includes that it may read, and environment
	// variables. nil allows everything.
	Policy *trust.Policy
	// Day is the day for which the document is checked: models are shut down on a day. Zero
	// is no day; models that are known to be shut down are then the only ones.
	Day time.Time
	// Models are names of models that replace those of the document, by the id of the model.
	// PROVIDER/NAME also replaces the provider.
	Models map[string]string
}

// Limits bound the resources that a document may use. A zero field means the default.
type Limits struct {
	FileBytes   int // maximum bytes of one file; 4 MiB
	TotalBytes  int // maximum bytes of all files together; 32 MiB
	Depth       int // maximum nesting depth, including includes; 200
	Includes    int // maximum number of includes; 1,000
	AliasNodes  int // maximum number of values that aliases add; 100,000
	Diagnostics int // the most diags that are reported; 1,000

	Wait time.Duration // maximum time for all remote files together; 30 seconds
}

// Result is a loaded document.
type Result struct {
	Document *spec.Document                   // never nil; empty if nothing could be read
	Files    []*source.File                   // the root document, then its includes in the order of reading
	Lookup   func(name string) (string, bool) // the environment of the document: the process first, then the .env files
	User     func(name string) (string, bool) // the environment of the user: Lookup, for a restricted document without the .env files
}

// Load reads the document at path. The result is never nil; with errors in the list
// it contains the parts that could be read. The list is in file order.
func Load(ctx context.Context, path string, opts Options) (*Result, diag.List) {
	f, file := open(ctx, path, opts)
	defer f.remote.close()
	if file == nil {
		return f.result(&spec.Document{})
	}
	return f.load(file, path)
}

// LoadInto reads a file with the syntax of documents, such as a file of tests, and
// decodes it into the struct that to points to. what names the struct in messages. It
// returns the files that were read; the list is in file order.
func LoadInto(ctx context.Context, path, what string, to spec.Node, opts Options) ([]*source.File, diag.List) {
	f, file := open(ctx, path, opts)
	defer f.remote.close()
	if file != nil {
		f.files = append(f.files, file)
		d := newDecoder(f)
		root := (&builder{loadState: f, file: file, path: path}).buildRoot()
		collectSecrets(f.redactor, root, map[*node]bool{})
		switch root.kind {
		case mapping:
			d.decodeStruct(root, reflect.ValueOf(to).Elem(), what)
		case broken:
		case null:
			d.diags.add(ruleEmpty.At(root.span, "the %s is empty", what))
		default:
			d.diags.add(ruleEmpty.At(root.head(), "the %s is %s", what, root.kind.noun()).WithHint("a mapping is expected"))
		}
	}
	f.diags.list.Sort()
	return f.files, f.diags.list
}

// open reads the file at path. It returns no file if that fails, and reports why.
func open(ctx context.Context, path string, opts Options) (*loadState, *source.File) {
	f := newLoadState(ctx, opts, dotEnvFolder(path))
	file, problem := f.readFirst(path)
	if problem != nil {
		found := problem.diagnostic(file)
		if near := nearFile(path); near != "" && problem.text == notExist && opts.Open == nil && opts.Confine == "" {
			found = found.WithHint("did you mean %q?", near)
		}
		f.diags.add(found)
		return f, nil
	}
	return f, file
}

// readFirst reads the file that includes nothing is above. The file has no text if there is a problem.
func (f *loadState) readFirst(path string) (*source.File, *readError) {
	file := &source.File{Path: f.name(path)}
	content, problem := f.read(path, "")
	if problem == nil {
		file.Text = content
	}
	return file, problem
}

// LoadBytes reads a document that is not in a file. Diagnostics show it under name.
// Includes are relative to opts.Confine, or to name if opts.Open reads them, and
// rejected if neither is set.
func LoadBytes(ctx context.Context, name string, text []byte, opts Options) (*Result, diag.List) {
	f := newLoadState(ctx, opts, ".")
	defer f.remote.close()
	f.noIncludes = opts.Confine == "" && opts.Open == nil
	file := &source.File{Path: name}
	content, problem := f.accept(text)
	if problem != nil {
		f.diags.add(problem.rule.At(source.Span{File: file}, "%s %s", name, problem.text))
		return f.result(&spec.Document{})
	}
	file.Text = content
	path := name // a path for opts.Open
	if opts.Confine != "" {
		path = filepath.Join(opts.Confine, filepath.Base(name))
	}
	return f.load(file, path)
}

func newLoadState(ctx context.Context, opts Options, folder string) *loadState {
	opts.Limits = opts.Limits.orDefault()
	f := &loadState{language: spec.LanguageOf(ctx), reader: &reader{ctx: ctx, opts: opts, remote: newRemote(opts.Limits.Wait, opts.Policy)}, diags: &diagnostics{limit: opts.Limits.Diagnostics, seen: map[string]bool{}}}
	f.work, _ = os.Getwd()
	var found diag.List
	f.redactor = redact.From(ctx)
	f.lookup, f.user, found = environment(opts, folder)
	f.lookup, f.user = secretLookup(f.redactor, f.lookup), secretLookup(f.redactor, f.user)
	f.diags.add(found...)
	return f
}

// load decodes a file that was read.
func (f *loadState) load(file *source.File, path string) (*Result, diag.List) {
	f.files = append(f.files, file)
	root := &builder{loadState: f, file: file, path: path}
	document := new(spec.Document)
	d := newDecoder(f)
	tree := root.buildRoot()
	collectSecrets(f.redactor, tree, map[*node]bool{})
	if f.explainForeign(file, path, tree) {
		return f.result(document)
	}
	d.decodeDocument(tree, document)
	d.reportUIHints()
	document.Gaps, document.Day, document.Language = d.gaps.spec(), f.opts.Day, f.language
	f.setCatalogue(document, path)
	return f.result(document)
}

func (f *loadState) result(document *spec.Document) (*Result, diag.List) {
	f.diags.list.Sort()
	collectHidden(f.redactor, f.files)
	return &Result{Document: document, Files: f.files, Lookup: f.lookup, User: f.user}, f.diags.list
}

// orDefault replaces zero limits by the defaults.
func (l Limits) orDefault() Limits {
	for _, limit := range []struct {
		field *int
		value int
	}{
		{&l.FileBytes, 4 << 20}, {&l.TotalBytes, 32 << 20}, {&l.Depth, 200},
		{&l.Includes, 1000}, {&l.AliasNodes, 100_000}, {&l.Diagnostics, 1000},
	} {
		if *limit.field <= 0 {
			*limit.field = limit.value
		}
	}
	if l.Wait <= 0 {
		l.Wait = 30 * time.Second
	}
	return l
}

// diagnostics collects diagnostics up to a limit, each once: an error in a value with
// YAML aliases, or in a file that is included twice, would otherwise be reported at every use.
type diagnostics struct {
	list   diag.List
	limit  int
	seen   map[string]bool
	muted  int // nothing is added while it is above 0
	raised int // number of calls of add, including diagnostics that were not added
}

// full reports whether the limit is reached.
func (f *diagnostics) full() bool { return len(f.list) > f.limit }

func (f *diagnostics) add(more ...diag.Diagnostic) {
	for _, d := range more {
		f.raised++
		if f.muted > 0 || f.full() {
			continue
		}
		key := keyOf(d)
		if f.seen[key] {
			continue
		}
		f.seen[key] = true
		if len(f.list) == f.limit {
			d = ruleLimit.At(d.Span, "there are more than %d diagnostics; the others are not shown", f.limit)
		}
		f.list.Add(d)
	}
}

// keyOf identifies what a diagnostic reports. An unknown key that a merge brings to several
// entities is one error, although its message names the entity.
func keyOf(d diag.Diagnostic) string {
	path, message := "", d.Message
	if d.Span.File != nil {
		path = d.Span.File.Path
	}
	if d.Code == ruleUnknownField.Code {
		message = d.Hint + d.Suggestion
	}
	return fmt.Sprintf("%s %v %s %s", path, d.Span.Start, d.Code, message)
}

// checkPath checks the constant path and the base of a step that reads or writes a file,
// with the functions of a run.
func (d *decoder) checkPath(n *node, s spec.Step) {
	file, ok := s.(spec.FileStep)
	if !ok {
		return
	}
	path, base, writes := file.FilePath()
	usable := remotefs.Readable
	if writes {
		usable = remotefs.Writable
	}
	if at := n.get("base"); isDecidedText(at) && trust.IsAddress(base) {
		d.reportPath(at, "base", addressProblem(usable(trust.Below(base, "file"))))
	}
	uri := uriOf(n)
	switch {
	case !isDecidedText(uri):
	case strings.TrimSpace(path.URI) == "":
		d.diags.add(ruleKind.At(uri.span, "%q is empty", "path.uri").WithHint("give it the path of a file"))
	default:
		problem := addressProblem(usable(path.URI))
		if problem == "" && writes {
			problem = spec.UnwritableFile(path.URI)
		}
		d.reportPath(uri, "path.uri", problem)
	}
}

func (d *decoder) reportPath(at *node, key, problem string) {
	if problem != "" {
		if strings.Contains(at.source, "://") {
			hideValue(at) // an address may have a password
		}
		d.diags.add(ruleKind.At(at.span, "%q cannot be %q: %s", key, remotefs.Redacted(at.shown()), problem))
	}
}

// isDecidedText reports whether a value is a text without environment variables that are not
// set.
func isDecidedText(n *node) bool { return n != nil && n.kind == text && !n.unset }

// addressProblem returns why an address cannot be used; empty if it can.
func addressProblem(err error) string {
	reason, ok := errors.AsType[interface {
		error
		Reason() string
	}](err)
	if !ok {
		return ""
	}
	return reason.Reason()
}

// uriOf returns the value of uri in the path of a step; nil if there is none.
func uriOf(step *node) *node {
	if path := step.get("path"); path != nil && path.kind == mapping {
		return path.get("uri")
	}
	return nil
}
