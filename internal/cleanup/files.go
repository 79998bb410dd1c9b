package cleanup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/erasure"
	"github.com/qtype-dev/qtype/internal/localruns"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/waves"
)

// oldTemporary is the age of incomplete files that are removed without an age that the user names.
const oldTemporary = 24 * time.Hour

// temporaryName is the form of the names of incomplete files, as package remotefs makes them.
var temporaryName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\.(.+)\.[0-9a-f]{12}\.tmp$`) })

// traceStarts are what files of traces have in their first bytes, as package traceview writes them.
var traceStarts = sync.OnceValue(func() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		".html":  regexp.MustCompile(`(?s)^<!doctype html>.*<title>Trace of `),
		".jsonl": regexp.MustCompile(`^\{("run":\d+,)?("row":\d+,)?"id":"[0-9a-f]{16}",("parent":"[0-9a-f]{16}",)?"name":"`),
	}
})

// findFiles adds the files in a folder that are old.
func (p *Plan) findFiles(ctx context.Context, folder string) error {
	return localruns.EachFile(ctx, folder, func(path string, d fs.DirEntry) error {
		kind := p.kindOf(path)
		if kind == "" {
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) { // a run has ended
			return nil
		}
		if err != nil {
			return err
		}
		if p.isOld(kind, info.ModTime()) && p.isNew(path) {
			p.Items = append(p.Items, Item{Kind: kind, Where: path, Bytes: info.Size(), Used: info.ModTime().UTC(), InUse: isUsed(kind, path)})
		}
		return nil
	})
}

// isNew reports whether a file was not found before, also by the name of a link to its folder.
func (p *Plan) isNew(path string) bool {
	if full, err := filepath.Abs(path); err == nil {
		path = full
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if p.found[path] {
		return false
	}
	p.found[path] = true
	return true
}

// kindOf returns the kind of a file if it is selected, otherwise "".
func (p *Plan) kindOf(path string) Kind {
	name, c := filepath.Base(path), &p.config
	switch {
	case strings.HasSuffix(name, erasure.JournalSuffix) && c.Selects(Journals):
		return Journals
	case temporaryName().MatchString(name) && c.Selects(Temporary):
		return Temporary
	case c.Selects(Traces) && isTrace(path):
		return Traces
	}
	return ""
}

// isOld reports whether a file of a kind is old enough. Without an age of the user, journals and traces are not old.
func (p *Plan) isOld(kind Kind, modified time.Time) bool {
	before := p.config.before()
	if before.IsZero() && kind == Temporary {
		before = p.config.Now.Add(-oldTemporary)
	}
	return modified.Before(before)
}

// isTrace reports whether a file is one that --trace has written.
func isTrace(path string) bool {
	start, ok := traceStarts()[filepath.Ext(path)]
	if !ok {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read
	const first = 1024               // bytes
	text, err := io.ReadAll(io.LimitReader(f, first))
	return err == nil && start.Match(text)
}

// isUsed reports whether a run has a journal open or writes an incomplete file; the
// journal may belong to the output of the incomplete file.
func isUsed(kind Kind, path string) bool {
	switch kind {
	case Journals:
		return checkpoint.IsUsed(path)
	case Temporary:
		name := temporaryName().FindStringSubmatch(filepath.Base(path))[1]
		return remotefs.IsWritten(path) || checkpoint.IsUsed(filepath.Join(filepath.Dir(path), name+erasure.JournalSuffix))
	}
	return false
}

// removeFile removes a file that no run uses. The error is fs.ErrNotExist if its run, or another
// qtype clean, has removed it.
func (p *Plan) removeFile(item Item) error {
	if item.Kind == Journals {
		err := checkpoint.RemoveUnused(item.Where)
		if err != nil {
			return err
		}
		for _, calls := range waves.Files(strings.TrimSuffix(item.Where, erasure.JournalSuffix)) {
			if removed := os.Remove(calls); !errors.Is(removed, fs.ErrNotExist) {
				err = errors.Join(err, removed)
			}
		}
		return err
	}
	if isUsed(item.Kind, item.Where) {
		return checkpoint.ErrBusy
	}
	return os.Remove(item.Where)
}
