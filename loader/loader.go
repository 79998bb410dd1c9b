// Package loader turns a document's text into spec values with places: it reads
// the file and its includes, sets environment variables in, and decodes the
// syntax tree by the tags of package spec. It finds every found of form in one
// pass; what the parts mean together is package validate's business.
package loader

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// Options change how a document is loaded. The zero value is what a local file wants.
type Options struct {
	// Lookup finds an environment variable; os.LookupEnv where it is nil. What it
	// does not know is looked up in .env beside the document, then in the current folder.
	Lookup func(name string) (value string, found bool)
	// NoDotEnv leaves the .env files alone.
	NoDotEnv bool
	// Strict makes an unset ${NAME} without a default an error (QT005) instead of a
	// warning. Either way a text keeps the ${NAME} as it is written, and a number, a
	// reference or a type that holds one is left as if its key were absent, so that
	// later checks report nothing that follows from it.
	Strict bool
	// Confine is the one folder that includes may read, symbolic links resolved;
	// empty for no such border. A document loaded from bytes includes nothing without it.
	// Whatever it is, a document of another machine includes only what lies below its
	// own address.
	Confine string
	// Offline refuses what lies on other machines.
	Offline bool
	// Open reads a file in place of the operating system; Confine is not applied to
	// it. What it answers with neither a reader nor an error is read as without it.
	Open func(ctx context.Context, path string) (io.ReadCloser, error)
	// Fetch reads a file of another machine in place of the loader's own client, once
	// it is known that the document may read it. Redirections must stay below base,
	// unless it is empty. An error's method Reason, or else its text, says why it cannot
	// be read.
	Fetch func(ctx context.Context, address, base string) ([]byte, error)
	// Limits bound what a document may cost.
	Limits Limits
}

// Limits bound what a document may cost. A zero field stands for its default.
type Limits struct {
	FileBytes   int // the most bytes of one file; 4 MiB
	TotalBytes  int // the most bytes of all files together; 32 MiB
	Depth       int // the most levels of nesting, includes counted; 200
	Includes    int // the most include directives that are followed; 1,000
	AliasNodes  int // the most values that aliases may add; 100,000
	Diagnostics int // the most diags that are reported; 1,000

	Wait time.Duration // how long the files of other machines may take together; 30 seconds
}

// Result is what could be made of a document.
type Result struct {
	Document *spec.Document                   // never nil; empty where nothing could be read
	Files    []*source.File                   // the root document, then its includes in the order of reading
	Lookup   func(name string) (string, bool) // the environment that the document saw: process first, then the .env files
}

// Load reads the document at path. The result is never nil and holds what could
// be made of it, also where the list has errors; the list is in file order.
func Load(ctx context.Context, path string, opts Options) (*Result, diag.List) {
	f, file := open(ctx, path, opts)
	defer f.remote.close()
	if file == nil {
		return f.result(&spec.Document{})
	}
	return f.load(file, path)
}

// LoadInto reads a file that is no document but follows the same rules: it is
// decoded by the tags of the struct that to points to, whose name in a user's
// words is what. It answers the files that were read; the list is in file order.
func LoadInto(ctx context.Context, path, what string, to spec.Node, opts Options) ([]*source.File, diag.List) {
	f, file := open(ctx, path, opts)
	defer f.remote.close()
	if file != nil {
		f.files = append(f.files, file)
		d := newDecoder(f.diags)
		switch root := (&builder{loadState: f, file: file, path: path}).buildRoot(); root.kind {
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

// open reads the file at path; it answers no file where that fails, which is told.
func open(ctx context.Context, path string, opts Options) (*loadState, *source.File) {
	folder := filepath.Dir(remotefs.Path(path))
	if _, remote := remotefs.Remote(path); remote {
		folder = "." // only a local document has a .env file beside it
	}
	f := newLoadState(ctx, opts, folder)
	file := &source.File{Path: f.name(path)}
	content, problem := f.read(path, "")
	if problem != nil {
		rule := ruleUnreadable
		if problem.rule != nil {
			rule = *problem.rule
		}
		f.diags.add(rule.At(source.Span{File: file}, "%s %s", file.Path, problem.text))
		return f, nil
	}
	file.Text = content
	return f, file
}

// LoadBytes reads a document that is not in a file, or not yet. The name stands
// for it in diagnostics. Includes are relative to opts.Confine, or to the name
// where opts.Open reads them, and refused where neither is given.
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
	path := name // what opts.Open understands
	if opts.Confine != "" {
		path = filepath.Join(opts.Confine, filepath.Base(name))
	}
	return f.load(file, path)
}

func newLoadState(ctx context.Context, opts Options, folder string) *loadState {
	opts.Limits = opts.Limits.orDefault()
	f := &loadState{reader: &reader{ctx: ctx, opts: opts, remote: newRemote(opts.Limits.Wait)}, diags: &diagnostics{limit: opts.Limits.Diagnostics, seen: map[string]bool{}}}
	f.work, _ = os.Getwd()
	var found diag.List
	f.lookup, found = environment(opts, folder)
	f.diags.add(found...)
	return f
}

// load makes the document of a file that was read.
func (f *loadState) load(file *source.File, path string) (*Result, diag.List) {
	f.files = append(f.files, file)
	root := &builder{loadState: f, file: file, path: path}
	document := new(spec.Document)
	d := newDecoder(f.diags)
	d.decodeDocument(root.buildRoot(), document)
	d.reportUIHints()
	document.Gaps = d.gaps.spec()
	return f.result(document)
}

func (f *loadState) result(document *spec.Document) (*Result, diag.List) {
	f.diags.list.Sort()
	return &Result{Document: document, Files: f.files, Lookup: f.lookup}, f.diags.list
}

// orDefault fills the limits that are not given.
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
