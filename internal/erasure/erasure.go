// Package erasure deletes everything that an application has stored of a user, and
// reports what it deleted.
package erasure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/cacheview"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
)

// JournalSuffix ends the name of the journal of an interrupted run.
const JournalSuffix = ".qtype-journal"

// App is the part of runtime.App that this package needs.
type App interface {
	Spec() *spec.Application
	Memory(id string) *memory.Memory
	StoreLocation(id string) string
	State() store.Application
}

// Config describes an erasure.
type Config struct {
	App      App              // the application
	User     string           // the name of the user, as principals of the server have it
	Caches   cacheview.Caches // of steps, which do not know whose results they have: they are cleared; nil: none
	Journals []string         // folders whose journals of interrupted runs are deleted if they have rows of the user
	Now      func() time.Time // the clock; nil: time.Now
}

// Receipt lists what was deleted.
type Receipt struct {
	User     string    `json:"user"`
	Time     time.Time `json:"time"` // in UTC
	Deleted  []Item    `json:"deleted"`
	Caches   []Cleared `json:"caches"`   // caches that were cleared as a whole
	Journals []string  `json:"journals"` // files that were deleted
	Kept     []string  `json:"kept"`     // memories whose conversation all users share: it was not changed
	Searched []string  `json:"searched"` // every place that was searched
}

// Item is a deleted part of a store.
type Item struct {
	Kind     string `json:"kind"`               // session, shared (what the sessions of the user share), run, server
	Memory   string `json:"memory,omitempty"`   // session, shared: the memory's id
	ID       string `json:"id"`                 // its id in the store
	Messages int64  `json:"messages,omitempty"` // session: of the history
}

// Cleared is a cache that was cleared.
type Cleared struct {
	Directory string `json:"directory"`
	Step      string `json:"step"`
	Results   int64  `json:"results"`
}

// User deletes everything of a user. It can be called again after an error: what was
// deleted is no longer found.
func User(ctx context.Context, cfg Config) (*Receipt, error) {
	now := time.Now
	if cfg.Now != nil {
		now = cfg.Now
	}
	if cfg.User == "" {
		return nil, errors.New("the name of the user is empty")
	}
	r := &Receipt{User: cfg.User, Time: now().UTC().Truncate(time.Second), Deleted: []Item{}, Caches: []Cleared{}, Journals: []string{}, Kept: []string{}}
	for _, step := range []func(context.Context, Config) error{r.memories, r.server, r.caches, r.journals} {
		if err := step(ctx, cfg); err != nil {
			return r, err
		}
	}
	return r, nil
}

// memories deletes the sessions of the user in all memories, and what they share.
func (r *Receipt) memories(ctx context.Context, cfg Config) error {
	for _, declared := range cfg.App.Spec().Memories {
		m := cfg.App.Memory(declared.ID)
		if m.Scope() == memory.AppScope {
			r.Kept = append(r.Kept, declared.ID)
		}
		r.Searched = append(r.Searched, fmt.Sprintf("memory %s (%s)", declared.ID, cfg.App.StoreLocation(declared.ID)))
		deleted, err := m.ForgetUser(ctx, cfg.User)
		for _, l := range deleted {
			one := Item{Kind: "session", Memory: declared.ID, ID: l.Session, Messages: l.Head.State.Last}
			if memory.IsShared(l.Session) {
				one.Kind = "shared"
			}
			r.Deleted = append(r.Deleted, one)
		}
		if err != nil {
			return fmt.Errorf("memory %s: %w", declared.ID, err)
		}
	}
	return nil
}

// server deletes what the server has of the user: records of sessions and runs.
func (r *Receipt) server(ctx context.Context, cfg Config) error {
	state := cfg.App.State()
	if state.Store == nil {
		return nil
	}
	r.Searched = append(r.Searched, "state of the server")
	for _, kind := range appstate.OfSessions() {
		if err := r.records(ctx, state.Records(kind), kind, memory.UserPrefix(cfg.User)); err != nil {
			return err
		}
	}
	deleted, err := runs.Erase(ctx, state, func(owner, session string) bool {
		user, _ := memory.SplitSession(session)
		return owner == cfg.User || user == cfg.User
	})
	for _, id := range deleted {
		r.Deleted = append(r.Deleted, Item{Kind: "run", ID: id})
	}
	return err
}

// records deletes the records of a kind whose ids have a prefix.
func (r *Receipt) records(ctx context.Context, records store.Records, kind, prefix string) error {
	for h, err := range records.List(ctx, store.RecordQuery{Prefix: prefix}) {
		if err == nil {
			err = records.Delete(ctx, h.ID)
		}
		if err != nil {
			return err
		}
		r.Deleted = append(r.Deleted, Item{Kind: "server", ID: kind + " " + h.ID})
	}
	return nil
}

// caches clears the caches of steps.
func (r *Receipt) caches(ctx context.Context, cfg Config) error {
	stats, err := cfg.Caches.Stats(ctx)
	if err != nil {
		return err
	}
	for _, s := range stats {
		r.Caches = append(r.Caches, Cleared{s.Directory, s.Step, s.Entries})
		r.Searched = append(r.Searched, "cache "+s.Directory)
	}
	return cfg.Caches.Clear(ctx, io.Discard, false)
}

// journals deletes the journals of interrupted runs with rows of the user.
func (r *Receipt) journals(ctx context.Context, cfg Config) error {
	for _, folder := range cfg.Journals {
		r.Searched = append(r.Searched, "journals in "+folder)
		if err := r.journalsIn(ctx, folder, cfg.User); err != nil {
			return err
		}
	}
	return nil
}

// journalsIn deletes those in a folder. Links out of the folder are not followed.
func (r *Receipt) journalsIn(ctx context.Context, folder, user string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !d.Type().IsRegular() || !strings.HasSuffix(path, JournalSuffix):
			return nil
		}
		text, err := root.ReadFile(path)
		if err != nil || !mentions(text, user) {
			return err
		}
		r.Journals = append(r.Journals, filepath.Join(folder, path))
		err = root.Remove(path)
		for _, calls := range waves.Files(strings.TrimSuffix(path, JournalSuffix)) {
			if removed := root.Remove(calls); !errors.Is(removed, fs.ErrNotExist) {
				err = errors.Join(err, removed)
			}
		}
		return err
	})
}

// mentions reports whether a journal has the name of a user: as the beginning of a session
// or as a JSON text.
func mentions(text []byte, user string) bool {
	return bytes.Contains(text, []byte(`"`+memory.UserPrefix(user))) || bytes.Contains(text, []byte(`"`+user+`"`))
}
