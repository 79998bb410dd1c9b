package storetest_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/storetest"
)

// fileStore is the example of docs/writing-a-store.md: a store with one JSON file for
// each session, for one process.
type fileStore struct {
	mu     sync.Mutex // held while a file is read or written
	folder string
}

// fileSession is the content of a file.
type fileSession struct {
	Key     memory.Key
	Head    memory.Head
	Entries []memory.Entry
	Events  []memory.Event
}

// apply makes a change.
func (s *fileSession) apply(c memory.Change) {
	s.Head.Version, s.Head.State = c.Next, c.State
	if s.Head.Values == nil {
		s.Head.Values = map[string][]byte{}
	}
	maps.Copy(s.Head.Values, c.Values)
	maps.DeleteFunc(s.Head.Values, func(_ string, value []byte) bool { return value == nil })
	for _, e := range c.Entries {
		s.Entries = append(s.Entries, *e)
	}
	s.Events = append(s.Events, c.Events...)
}

// selected yields the entries that q selects.
func (s *fileSession) selected(q memory.Query, yield func(*memory.Entry, error) bool) {
	for _, e := range s.Entries {
		switch {
		case e.Seq < q.From, q.To != 0 && e.Seq > q.To:
		case q.Live && e.Status == memory.Failed:
		case q.IDs != nil && !slices.Contains(q.IDs, e.Message.ID):
		case !yield(&e, nil):
			return
		}
	}
}

// path returns the file of a session. Ids are arbitrary strings, so it has their hash.
func (s *fileStore) path(key memory.Key) string {
	mem, session := sha256.Sum256([]byte(key.Memory)), sha256.Sum256([]byte(key.Session))
	return filepath.Join(s.folder, hex.EncodeToString(mem[:]), hex.EncodeToString(session[:])+".json")
}

// load returns a session, the zero session for an unknown one.
func (s *fileStore) load(ctx context.Context, key memory.Key) (session fileSession, err error) {
	if err := ctx.Err(); err != nil {
		return session, err
	}
	text, err := os.ReadFile(s.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return session, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &session)
	}
	return session, err
}

// save replaces the file of a session as a whole.
func (s *fileStore) save(key memory.Key, session fileSession) error {
	path := s.path(key)
	text, err := json.Marshal(session)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "*.tmp")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return err
}

func (s *fileStore) Apply(ctx context.Context, key memory.Key, c memory.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	session, err := s.load(ctx, key)
	if err != nil {
		return err
	}
	if session.Head.Version != c.Version {
		return memory.ErrConflict
	}
	session.Key = key
	session.apply(c)
	return s.save(key, session)
}

func (s *fileStore) Head(ctx context.Context, key memory.Key) (memory.Head, error) {
	session, err := s.read(ctx, key)
	return session.Head, err
}

func (s *fileStore) read(ctx context.Context, key memory.Key) (fileSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load(ctx, key)
}

func (s *fileStore) Entries(ctx context.Context, key memory.Key, q memory.Query) iter.Seq2[*memory.Entry, error] {
	return func(yield func(*memory.Entry, error) bool) {
		session, err := s.read(ctx, key)
		if err != nil {
			yield(nil, err)
			return
		}
		session.selected(q, yield)
	}
}

func (s *fileStore) Events(ctx context.Context, key memory.Key) iter.Seq2[memory.Event, error] {
	return func(yield func(memory.Event, error) bool) {
		session, err := s.read(ctx, key)
		if err != nil {
			yield(memory.Event{}, err)
			return
		}
		for _, e := range session.Events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (s *fileStore) Delete(ctx context.Context, key memory.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.Remove(s.path(key)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (s *fileStore) Sessions(ctx context.Context, mem string) iter.Seq2[memory.SessionHead, error] {
	return func(yield func(memory.SessionHead, error) bool) {
		heads, err := s.list(ctx, mem)
		if err != nil {
			yield(memory.SessionHead{}, err)
			return
		}
		for _, h := range heads {
			if !yield(h, nil) {
				return
			}
		}
	}
}

// list returns the sessions of a memory, ordered by id.
func (s *fileStore) list(ctx context.Context, mem string) ([]memory.SessionHead, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(s.path(memory.Key{Memory: mem})), "*.json"))
	if err := cmp.Or(err, ctx.Err()); err != nil {
		return nil, err
	}
	var heads []memory.SessionHead
	for _, file := range files {
		var session fileSession
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &session)
		}
		if err != nil {
			return nil, err
		}
		session.Head.Values = nil
		heads = append(heads, memory.SessionHead{Session: session.Key.Session, Head: session.Head})
	}
	slices.SortFunc(heads, func(a, b memory.SessionHead) int { return cmp.Compare(a.Session, b.Session) })
	return heads, nil
}

func (s *fileStore) Close() error { return nil }

func TestFileStore(t *testing.T) {
	storetest.RunDurable(t, func(t *testing.T, place string) memory.Store { return &fileStore{folder: place} })
}
