// Package lint checks many documents at once, as `qtype validate` does: it finds
// them in folders, patterns and Markdown pages, reads and checks each, takes out
// what comments silence, mends what has one safe mending, and checks again when
// a file changes.
package lint

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
	"github.com/qtype-dev/qtype/validate"
)

// Result is what was found in one document.
type Result struct {
	Document Document         // what was checked
	Faults   diag.List        // what is wrong with it and not silenced, in file order
	Files    int              // how many files it is made of, at least 1
	Summary  validate.Summary // what it declares

	hidden []source.Span // where secrets stand in its files
}

// Check checks documents side by side and answers in their order. What it could
// not come to because ctx ended has no result: the answer is then shorter.
func Check(ctx context.Context, documents []Document, opts loader.Options) []Result {
	return settle(checkAll(ctx, documents, opts))
}

// Faults are the faults of all results, in order.
func Faults(results []Result) diag.List {
	var all diag.List
	for _, r := range results {
		all.Add(r.Faults...)
	}
	return all
}

// pendingResult is a result before the comments of all documents are known.
type pendingResult struct {
	Result
	comments []*ignoreComment // the silencing comments of its files
}

// checkAll checks with as many workers as there are processors.
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

// checker is what the checks of one call share.
type checker struct {
	opts  loader.Options
	known func() []string // the codes there are
	pages *pages
}

func newChecker(opts loader.Options) *checker {
	return &checker{opts: opts, known: sync.OnceValue(codes), pages: new(pages)}
}

// check reads and checks one document.
func (c *checker) check(ctx context.Context, d Document, open opener) pendingResult {
	if d.problem != "" {
		whole := source.Span{File: &source.File{Path: d.Path}}
		return pendingResult{Result: Result{Document: d, Faults: diag.List{overLimit(whole, d.Path+" "+d.problem)}, Files: 1}}
	}
	opts := c.opts
	opts.Open = open
	if d.block > 0 {
		opts.Open = c.blockReader(d, open)
	}
	loaded, faults := loader.Load(ctx, d.Path, opts)
	faults = append(faults, validate.Check(loaded.Document)...)
	comments, malformed := commentsOf(loaded.Files, c.known)
	faults = append(silence(comments, faults), malformed...)
	for i := range faults {
		if !isFixable(faults[i]) {
			faults[i] = faults[i].WithoutFix()
		}
	}
	faults.Sort()
	faults = atMost(faults)
	result := Result{Document: d, Faults: faults, Files: max(len(loaded.Files), 1), Summary: validate.Summarise(loaded.Document)}
	for _, f := range loaded.Files {
		result.hidden = append(result.hidden, f.Hidden()...)
	}
	return pendingResult{result, comments}
}

// opener is the form of loader.Options.Open.
type opener = func(ctx context.Context, path string) (io.ReadCloser, error)

// blockReader answers a page's block in place of the page, with the block's
// lines where they stand in the page.
func (c *checker) blockReader(d Document, below opener) opener {
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

// overLimit is a finding about something that is too much, under the loader's
// code for that.
func overLimit(at source.Span, message string) diag.Diagnostic {
	return diag.Diagnostic{Code: "QT009", Severity: diag.Error, Span: at, Message: message}
}

// maxDiagnostics is how many findings of a document are told, as in the loader.
const maxDiagnostics = 1000

// atMost leaves out what nobody reads, and says so.
func atMost(faults diag.List) diag.List {
	if len(faults) <= maxDiagnostics {
		return faults
	}
	left := overLimit(faults[maxDiagnostics].Span, fmt.Sprintf("there are more than %d findings; the others are not shown", maxDiagnostics))
	if faults[maxDiagnostics:].Errors() == 0 {
		left.Severity = diag.Warning
	}
	return append(faults[:maxDiagnostics:maxDiagnostics], left)
}

// settle reports the comments that silence nothing in any of the documents: a
// file that several of them include may need a comment for one of them.
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
				if c.used[code] || one.Faults.Errors() > 0 {
					needed[keyOf(c)][code] = true
				}
			}
		}
	}
	results := make([]Result, len(all))
	told := map[key]bool{}
	for i, one := range all {
		results[i] = one.Result
		var useless diag.List
		for _, c := range one.comments {
			if k := keyOf(c); !told[k] {
				told[k] = true
				useless.Add(c.unusedDiagnostic(needed[k])...)
			}
		}
		if len(useless) > 0 {
			results[i].Faults = slices.Concat(one.Faults, useless)
			results[i].Faults.Sort()
		}
	}
	return results
}
