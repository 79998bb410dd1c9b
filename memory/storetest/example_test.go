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
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
)

// folderStore is a store.Store that keeps each session in a JSON file of a
// folder. It serves one process: its mutex does not exclude others.
type folderStore struct {
	folder string
	mu     sync.Mutex
}

// session is the content of a file.
type session struct {
	Key     store.Key
	Head    store.Head
	Entries []*store.Entry
	Events  []store.Event
}

// path returns the file of a session. Keys are arbitrary strings, so the name is a hash.
func (s *folderStore) path(key store.Key) string {
	sum := sha256.Sum256([]byte(key.Memory + "\x00" + key.Session + "\x00" + key.Memory))
	return filepath.Join(s.folder, hex.EncodeToString(sum[:])+".json")
}

// load reads a file; a session without a file is empty, which is not an error.
func (s *folderStore) load(ctx context.Context, path string) (session, error) {
	var one session
	if err := ctx.Err(); err != nil {
		return one, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return one, one.read(path)
}

func (one *session) read(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &store.StoreError{Location: path, Problem: store.Unavailable, Message: "cannot be read", Err: err}
	}
	if err := json.Unmarshal(data, one); err != nil {
		return &store.StoreError{Location: path, Problem: store.Corrupt, Message: "is not a session", Err: err}
	}
	return nil
}

func (s *folderStore) Head(ctx context.Context, key store.Key) (store.Head, error) {
	one, err := s.load(ctx, s.path(key))
	return one.Head, err
}

func (s *folderStore) Entries(ctx context.Context, key store.Key, q store.Query) iter.Seq2[*store.Entry, error] {
	return func(yield func(*store.Entry, error) bool) {
		one, err := s.load(ctx, s.path(key))
		if err != nil {
			yield(nil, err)
			return
		}
		for _, e := range one.Entries {
			selected := e.Seq >= q.From && (q.To == 0 || e.Seq <= q.To) &&
				!(q.Live && e.Status == store.Failed) &&
				(q.IDs == nil || slices.Contains(q.IDs, e.Message.ID))
			if selected && !yield(e, nil) {
				return
			}
		}
	}
}

func (s *folderStore) Events(ctx context.Context, key store.Key) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		one, err := s.load(ctx, s.path(key))
		if err != nil {
			yield(store.Event{}, err)
			return
		}
		for _, e := range one.Events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (s *folderStore) Apply(ctx context.Context, key store.Key, c store.Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	path := s.path(key)
	one := session{Key: key}
	if err := one.read(path); err != nil {
		return err
	}
	if one.Head.Version != c.Version {
		return store.ErrConflict
	}
	one.Head.Version, one.Head.State = c.Next, c.State
	one.Head.Values = applyValues(one.Head.Values, c.Values)
	one.Entries = append(one.Entries, c.Entries...)
	one.Events = append(one.Events, c.Events...)
	return one.write(path)
}

// applyValues sets the values of a change; nil removes a name.
func applyValues(old, set map[string][]byte) map[string][]byte {
	values := maps.Clone(old)
	if values == nil {
		values = map[string][]byte{}
	}
	for name, value := range set {
		if value == nil {
			delete(values, name)
		} else {
			values[name] = value
		}
	}
	if len(values) == 0 {
		return nil
	}
	return values
}

// write replaces the file as a whole: after a crash it has the old content or the new.
func (one *session) write(path string) error {
	data, err := json.Marshal(one)
	if err == nil {
		err = os.WriteFile(path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return &store.StoreError{Location: path, Problem: store.Unavailable, Message: "cannot be written", Err: err}
	}
	return nil
}

func (s *folderStore) Delete(ctx context.Context, key store.Key) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.Remove(s.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &store.StoreError{Location: s.folder, Problem: store.Unavailable, Message: "cannot delete a session", Err: err}
	}
	return nil
}

func (s *folderStore) Sessions(ctx context.Context, id string) iter.Seq2[store.SessionHead, error] {
	return func(yield func(store.SessionHead, error) bool) {
		var all []store.SessionHead
		files, err := os.ReadDir(s.folder)
		for _, f := range files {
			var one session
			if err == nil && strings.HasSuffix(f.Name(), ".json") {
				one, err = s.load(ctx, filepath.Join(s.folder, f.Name()))
			}
			if one.Head.Version != 0 && one.Key.Memory == id {
				one.Head.Values = nil
				all = append(all, store.SessionHead{Session: one.Key.Session, Head: one.Head})
			}
		}
		if err != nil {
			yield(store.SessionHead{}, err)
			return
		}
		slices.SortFunc(all, func(a, b store.SessionHead) int { return cmp.Compare(a.Session, b.Session) })
		for _, one := range all {
			if !yield(one, nil) {
				return
			}
		}
	}
}

func (s *folderStore) Close() error { return nil }

func TestFolderStore(t *testing.T) {
	storetest.RunDurable(t, func(t *testing.T, place string) store.Store { return &folderStore{folder: place} })
}
