// Package lint checks many documents, as `qtype validate` does: it finds them in
// folders, by patterns and in Markdown pages, validates each, applies ignore
// comments and fixes, and watches files.
package lint

//go:generate go run ./generate -out ../../docs

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/ruletext"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
	"github.com/qtype-dev/qtype/validate"
)

// Result is the result of checking a document.
type Result struct {
	Document    Document  // the checked document
	Diagnostics diag.List // diagnostics that are not ignored, in file order
	Files       int       // number of files of the document, at least 1
	Summary     string    // what it declares: "1 flow, 2 steps"
	Notes       []string  // what else a user should know about it; see validate.Notes

	unchecked bool          // its application has errors, which are those of another result
	hidden    []source.Span // secrets in its files
}

// IsValid reports whether the document was checked and has no diagnostics.
func (r *Result) IsValid() bool { return len(r.Diagnostics) == 0 && !r.unchecked }

// Check checks documents concurrently and returns the results in their order. If
// ctx is canceled, there are results of the first documents only.
func Check(ctx context.Context, documents []Document, opts loader.Options) []Result {
	return settle(checkAll(ctx, documents, opts))
}

// Diagnostics returns the diagnostics of all results in order.
func Diagnostics(results []Result) diag.List {
	var all diag.List
	for _, r := range results {
		all.Add(r.Diagnostics...)
	}
	return all
}

// pendingResult is a result before the comments of all documents are known.
type pendingResult struct {
	Result
	comments []*ignoreComment // the ignore comments of its files
}

func checkAll(ctx context.Context, documents []Document, opts loader.Options) []pendingResult {
	all := make([]pendingResult, len(documents))
	c := newChecker(opts)
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(documents)) {
		workers.Go(func() {
			for i := range next {
				all[i] = c.check(ctx, documents[i], opts.Open)
			}
		})
	}
	done := 0
	for ; done < len(documents) && ctx.Err() == nil; done++ {
		next <- done
	}
	close(next)
	workers.Wait()
	return all[:done]
}

// checker is the shared state of a run.
type checker struct {
	opts  loader.Options
	known func() []string // returns all codes
	pages *pages
}

func newChecker(opts loader.Options) *checker {
	return &checker{opts: opts, known: sync.OnceValue(codes), pages: new(pages)}
}

func (c *checker) check(ctx context.Context, d Document, open Opener) pendingResult {
	if d.problem != "" {
		whole := source.Span{File: &source.File{Path: d.Path}}
		return pendingResult{Result: Result{Document: d, Diagnostics: diag.List{overLimit(whole, d.Path+" "+d.problem)}, Files: 1}}
	}
	if d.kind != nil {
		return pendingResult{Result: d.kind.check(ctx, d, open)}
	}
	opts := c.opts
	opts.Open = open
	if d.block > 0 {
		opts.Open = c.blockReader(d, open)
	}
	if opts.Policy == nil && trust.IsAddress(d.Path) {
		opts.Policy = trust.ForDocument(d.Path, false, trust.Grants{}, nil) // a run would refuse the same
	}
	loaded, list := loader.Load(ctx, d.Path, opts)
	list = append(list, validate.CheckFor(loaded.Document, parts.From(ctx))...)
	comments, malformed := commentsOf(loaded.Files, c.known)
	list = append(ignore(comments, list), malformed...)
	for i := range list {
		if !isFixable(list[i]) {
			list[i] = list[i].WithoutFix()
		}
	}
	list.Sort()
	list = atMost(list)
	result := Result{Document: d, Diagnostics: list, Files: max(len(loaded.Files), 1), Summary: validate.Summarise(loaded.Document).String()}
	if len(list) == 0 {
		result.Notes = validate.Notes(loaded.Document)
	}
	for _, f := range loaded.Files {
		result.hidden = append(result.hidden, f.Hidden()...)
	}
	return pendingResult{result, comments}
}

// Opener is the type of loader.Options.Open.
type Opener = func(ctx context.Context, path string) (io.ReadCloser, error)

// blockReader returns an opener that replaces a page by one of its blocks, at the
// lines that the block has in the page.
func (c *checker) blockReader(d Document, below Opener) Opener {
	return func(ctx context.Context, path string) (io.ReadCloser, error) {
		var in io.ReadCloser
		var err error
		if below != nil {
			in, err = below(ctx, path)
		}
		if filepath.Clean(path) != d.Path || err != nil {
			return in, err
		}
		read, err := c.pages.get(d.Path, func() (*page, error) { return readPage(in, path) })
		if err != nil {
			return nil, err
		}
		return io.NopCloser(bytes.NewReader(read.blank(d.block))), nil
	}
}

// overLimit returns a diagnostic with the loader's code for exceeded limits.
func overLimit(at source.Span, message string) diag.Diagnostic {
	return diag.Diagnostic{Code: "QT009", Severity: diag.Error, Span: at, Message: message}
}

// maxDiagnostics limits the diagnostics of a document, as in the loader.
const maxDiagnostics = 1000

// atMost truncates the list and reports that.
func atMost(list diag.List) diag.List {
	if len(list) <= maxDiagnostics {
		return list
	}
	left := overLimit(list[maxDiagnostics].Span, fmt.Sprintf("more than %d diagnostics; the others are not shown", maxDiagnostics))
	if list[maxDiagnostics:].Errors() == 0 {
		left.Severity = diag.Warning
	}
	return append(list[:maxDiagnostics:maxDiagnostics], left)
}

// settle reports the comments that ignore nothing in any of the documents. A file
// that several documents include may need a comment for only one of them.
func settle(all []pendingResult) []Result {
	type key struct {
		path, text string
		line       int
	}
	keyOf := func(c *ignoreComment) key { return key{c.file.Path, c.text, c.line} }
	needed := map[key]map[string]bool{}
	for _, one := range all {
		for _, c := range one.comments {
			if needed[keyOf(c)] == nil {
				needed[keyOf(c)] = map[string]bool{}
			}
			for _, code := range c.codes {
				if c.used[code] || one.Diagnostics.Errors() > 0 {
					needed[keyOf(c)][code] = true
				}
			}
		}
	}
	listed := map[string]bool{}
	for _, one := range all {
		listed[one.Document.Path] = true
	}
	results := make([]Result, len(all))
	reported := map[key]bool{}
	for i, one := range all {
		results[i] = one.Result
		if one.Document.kind != nil {
			results[i].Diagnostics = slices.DeleteFunc(slices.Clone(one.Diagnostics), func(d diag.Diagnostic) bool {
				return d.Span.File != nil && d.Span.File.Path != one.Document.Path && listed[d.Span.File.Path]
			})
			results[i].unchecked = len(results[i].Diagnostics) < len(one.Diagnostics)
		}
		var unused diag.List
		for _, c := range one.comments {
			if k := keyOf(c); !reported[k] {
				reported[k] = true
				unused.Add(c.unusedDiagnostic(needed[k])...)
			}
		}
		if len(unused) > 0 {
			results[i].Diagnostics = slices.Concat(one.Diagnostics, unused)
			results[i].Diagnostics.Sort()
		}
	}
	return results
}

// The rules of ignore comments.
var (
	ruleMalformed = diag.Rule{Code: "QT020", Severity: diag.Warning}
	ruleUnused    = diag.Rule{Code: "QT021", Severity: diag.Warning}
)

//go:embed rules/*.md
var texts embed.FS

// Rules lists all codes that a check reports, in order: those of the loader, of
// package validate and of this package.
func Rules() []diag.Rule {
	all := slices.Concat(loader.Rules(), validate.Rules(), ruletext.Must(texts, ruleMalformed, ruleUnused))
	slices.SortStableFunc(all, func(a, b diag.Rule) int { return strings.Compare(a.Code, b.Code) })
	return all
}

// ApplyIgnores removes the diagnostics that # qtype:ignore comments ignore, and adds
// warnings for malformed and unused comments. files are the files that loader.Load
// returned.
func ApplyIgnores(files []*source.File, list diag.List) diag.List {
	comments, malformed := commentsOf(files, codes)
	left := ignore(comments, list)
	results := settle([]pendingResult{{Result: Result{Diagnostics: append(left, malformed...)}, comments: comments}})
	results[0].Diagnostics.Sort()
	return results[0].Diagnostics
}

// IgnoreWarnings is like ApplyIgnores but removes only warnings and does not check
// the comments. It is for runs, which errors abort anyway.
func IgnoreWarnings(files []*source.File, list diag.List) diag.List {
	if list.Warnings() == 0 {
		return list
	}
	comments, _ := commentsOf(files, codes)
	byTarget := byLine(comments)
	return slices.DeleteFunc(slices.Clone(list), func(d diag.Diagnostic) bool {
		return d.Severity == diag.Warning && byTarget.ignores(d)
	})
}

// ignore removes the diagnostics that a comment ignores, and marks the comments
// used.
func ignore(comments []*ignoreComment, list diag.List) diag.List {
	if len(comments) == 0 {
		return list
	}
	byTarget := byLine(comments)
	return slices.DeleteFunc(list, func(d diag.Diagnostic) bool { return byTarget.ignores(d) })
}

type line struct {
	file *source.File
	n    int
}

// ignoreComments are comments by the lines that they apply to.
type ignoreComments map[line][]*ignoreComment

func byLine(comments []*ignoreComment) ignoreComments {
	byTarget := ignoreComments{}
	for _, c := range comments {
		at := line{c.file, c.target}
		byTarget[at] = append(byTarget[at], c)
	}
	return byTarget
}

// ignores reports whether a comment ignores a diagnostic, and marks the comment
// used. A file that is included as text has no comments: those at its directive count.
func (s ignoreComments) ignores(d diag.Diagnostic) bool {
	hit := false
	at := d.Span
	if at.File != nil && isRaw(at.File) {
		at = at.File.From
	}
	for _, c := range s[line{at.File, at.Start.Line}] {
		if slices.Contains(c.codes, d.Code) {
			c.used[d.Code] = true
			hit = true
		}
	}
	return hit
}
