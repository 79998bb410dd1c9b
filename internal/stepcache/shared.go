package stepcache

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	memstore "github.com/qtype-dev/qtype/memory/store"
)

// sharedMemory is the memory of the store that has the entries of caches.
const sharedMemory = "qtype:cache"

const (
	sharedValue    = "entry" // the name of the value of an entry: the first byte of its codec, and the packed entry
	maxSharedBytes = 8 << 20 // the largest entry: stores of memories are made for smaller values
	sharedPage     = 1_000   // entries that are listed at once
	evictShare     = 20      // a process looks for entries to evict when it has added one in 20 of what may be stored
	evictTo        = 0.9     // of the limit is left then
)

// Entries keeps the results of steps: a Store in a file, a Shared in a store of memories.
type Entries interface {
	// Place returns the folder of the file, or SharedPlace.
	Place() string
	// Get returns an entry that has not expired.
	Get(ctx context.Context, scope Scope, key Key, p Policy) (entry []byte, found bool, err error)
	// Put adds or replaces an entry. stored is false if it is too large.
	Put(ctx context.Context, scope Scope, key Key, entry []byte, p Policy) (stored bool, err error)
	// Drop removes an entry, if it exists.
	Drop(ctx context.Context, scope Scope, key Key) error
	// Stats returns the entries by namespace, step and version.
	Stats(ctx context.Context) ([]Stat, error)
	// Clear removes the entries of the scopes that match, or all if match is nil, and returns their number.
	Clear(ctx context.Context, match func(Scope) bool) (removed int64, err error)
	// Unused returns the number and the size of the entries of the scopes that match, which are expired or were last used
	// before a time; the zero time selects expired ones only.
	Unused(ctx context.Context, match func(Scope) bool, before time.Time) (entries, bytes int64, err error)
	// Prune removes the entries of Unused and returns their number.
	Prune(ctx context.Context, match func(Scope) bool, before time.Time) (removed int64, err error)
	// Close releases what Entries has opened itself.
	Close() error
}

// SharedPlace is the Place of a Shared.
const SharedPlace = "the store of memories"

// Shared keeps entries in a store of memories, which all processes of an application share. An entry is a session without
// messages. Reading does not change it: the oldest entries are evicted, not the least recently used ones. It is safe for
// concurrent use.
type Shared struct {
	store       memstore.Store
	application string
	clock       memstore.ServerClock

	mu    sync.Mutex
	added map[string]int64 // bytes since the last eviction, by step
}

// NewShared returns the entries of an application in a store, which the caller closes.
func NewShared(store memstore.Store, application string) *Shared {
	return &Shared{store: store, application: application, added: map[string]int64{}}
}

// Range returns the memory with the entries of the application, and the prefix of the ids of its sessions.
func (s *Shared) Range() memstore.Key {
	return memstore.Key{Memory: sharedMemory, Session: url.PathEscape(s.application) + "/"}
}

// Place returns SharedPlace.
func (s *Shared) Place() string { return SharedPlace }

// Close does nothing: the store is that of the memories.
func (s *Shared) Close() error { return nil }

// stepPrefix returns the beginning of the ids of the entries of a step, in any version.
func (s *Shared) stepPrefix(scope Scope) string {
	return url.PathEscape(s.application) + "/" + url.PathEscape(scope.Namespace) + "/" + url.PathEscape(scope.Step) + "/"
}

// id returns the key of an entry in the store.
func (s *Shared) id(scope Scope, key Key) memstore.Key {
	return memstore.Key{Memory: sharedMemory, Session: s.stepPrefix(scope) + url.PathEscape(scope.Version) + "/" + hex.EncodeToString(key[:])}
}

// scopeOf returns the scope of an entry by its id.
func scopeOf(session string) (scope Scope, ok bool) {
	parts := strings.Split(session, "/")
	if len(parts) != 5 {
		return Scope{}, false
	}
	var errs [3]error
	scope.Namespace, errs[0] = url.PathUnescape(parts[1])
	scope.Step, errs[1] = url.PathUnescape(parts[2])
	scope.Version, errs[2] = url.PathUnescape(parts[3])
	return scope, errors.Join(errs[:]...) == nil
}

// Get returns an entry that has not expired.
func (s *Shared) Get(ctx context.Context, scope Scope, key Key, p Policy) (entry []byte, found bool, err error) {
	head, err := s.store.Head(ctx, s.id(scope, key))
	if failed, ok := errors.AsType[*memstore.Error](err); ok && (failed.Problem == memstore.WrongKey || failed.Problem == memstore.Corrupt) {
		return nil, false, &Error{Path: SharedPlace, Message: "an entry of step " + scope.Step + " is not readable", Err: err, Damaged: true}
	}
	if err != nil || head.Version == 0 {
		return nil, false, err
	}
	now, err := s.clock.Now(ctx, s.store)
	if err != nil {
		return nil, false, err
	}
	if isExpired(head.State, now) || p.isOlder(head.State.LastSaid, now) {
		return nil, false, nil
	}
	value := head.Values[sharedValue]
	if len(value) == 0 {
		return nil, false, nil
	}
	codec := encodingRaw
	if value[0] == encodingZstd[0] {
		codec = encodingZstd
	}
	if entry, err = unpack(codec, value[1:]); err != nil {
		return nil, false, &Error{Path: SharedPlace, Message: "an entry of step " + scope.Step + " is damaged", Err: err, Damaged: true}
	}
	return entry, true, nil
}

// isExpired reports whether an entry has expired.
func isExpired(state memstore.State, now time.Time) bool {
	return !state.Expires.IsZero() && !now.Before(state.Expires)
}

// Put adds or replaces an entry. stored is false if it has more than 8 MiB, or exceeds p.MaxBytes alone. An entry that another
// process stores at the same time is left: it is the same result.
func (s *Shared) Put(ctx context.Context, scope Scope, key Key, entry []byte, p Policy) (stored bool, err error) {
	codec, packed, err := pack(entry, p.Compress)
	if err != nil {
		return false, &Error{Path: SharedPlace, Message: "cannot compress an entry", Err: err}
	}
	size := int64(len(packed))
	if size > maxSharedBytes || p.MaxBytes > 0 && size > p.MaxBytes {
		return false, nil
	}
	now, err := s.clock.Now(ctx, s.store)
	if err != nil {
		return false, err
	}
	id := s.id(scope, key)
	head, err := s.store.Head(ctx, id)
	if err != nil {
		return false, err
	}
	state := memstore.State{LastSaid: now, Size: size}
	if p.TTL > 0 {
		state.Expires = now.Add(p.TTL)
	}
	value := append([]byte{codec[0]}, packed...)
	err = s.store.Apply(ctx, id, memstore.Change{Version: head.Version, Next: memstore.NextVersion(head.Version), State: state, Values: map[string][]byte{sharedValue: value}})
	switch {
	case errors.Is(err, memstore.ErrConflict):
		return true, nil
	case err != nil:
		return false, err
	}
	return true, s.evictAfter(ctx, scope, size, p.MaxBytes)
}

// evictAfter evicts entries of a step if this process has added many since the last time.
func (s *Shared) evictAfter(ctx context.Context, scope Scope, size, limit int64) error {
	if limit <= 0 {
		return nil
	}
	prefix := s.stepPrefix(scope)
	s.mu.Lock()
	if _, ok := s.added[prefix]; !ok { // many processes that add little look as often as one that adds much
		s.added[prefix] = rand.Int64N(limit/evictShare + 1)
	}
	s.added[prefix] += size
	due := s.added[prefix] > limit/evictShare
	if due {
		s.added[prefix] = 0
	}
	s.mu.Unlock()
	if !due {
		return nil
	}
	return s.evict(ctx, prefix, limit)
}

// evict removes expired entries of a step, and its oldest ones if all together exceed a limit.
func (s *Shared) evict(ctx context.Context, prefix string, limit int64) error {
	now, err := s.clock.Now(ctx, s.store)
	if err != nil {
		return err
	}
	all, err := s.list(ctx, prefix)
	if err != nil {
		return err
	}
	var gone, left []memstore.SessionHead
	total := int64(0)
	for _, h := range all {
		if isExpired(h.Head.State, now) {
			gone = append(gone, h)
			continue
		}
		left, total = append(left, h), total+h.Head.State.Size
	}
	if total > limit {
		slices.SortFunc(left, func(a, b memstore.SessionHead) int { return a.Head.State.LastSaid.Compare(b.Head.State.LastSaid) })
		for _, h := range left {
			if float64(total) <= evictTo*float64(limit) {
				break
			}
			gone, total = append(gone, h), total-h.Head.State.Size
		}
	}
	_, err = s.removeAll(ctx, gone)
	return err
}

// removeAll removes entries that have not changed, and returns their number.
func (s *Shared) removeAll(ctx context.Context, entries []memstore.SessionHead) (removed int64, err error) {
	for page := range slices.Chunk(entries, sharedPage) {
		n, err := memstore.RemoveAll(ctx, s.store, sharedMemory, page)
		removed += int64(n)
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// list returns the entries whose ids have a prefix.
func (s *Shared) list(ctx context.Context, prefix string) ([]memstore.SessionHead, error) {
	var all []memstore.SessionHead
	query := memstore.SessionQuery{Prefix: prefix, Limit: sharedPage}
	for {
		page, err := memstore.ListSessions(ctx, s.store, sharedMemory, query)
		all = append(all, page...)
		if err != nil || len(page) < sharedPage {
			return all, err
		}
		query.After = page[len(page)-1].Session
	}
}

// Drop removes an entry, if it exists.
func (s *Shared) Drop(ctx context.Context, scope Scope, key Key) error {
	return s.store.Delete(ctx, s.id(scope, key))
}

// entries returns the entries of the application whose scopes match, by scope; all if match is nil.
func (s *Shared) entries(ctx context.Context, match func(Scope) bool) (map[Scope][]memstore.SessionHead, error) {
	all, err := s.list(ctx, s.Range().Session)
	if err != nil {
		return nil, err
	}
	found := map[Scope][]memstore.SessionHead{}
	for _, h := range all {
		if scope, ok := scopeOf(h.Session); ok && (match == nil || match(scope)) {
			found[scope] = append(found[scope], h)
		}
	}
	return found, nil
}

// Stats returns the entries by namespace, step and version. The time of the last use is when the newest entry was stored.
func (s *Shared) Stats(ctx context.Context) ([]Stat, error) {
	now, err := s.clock.Now(ctx, s.store)
	if err != nil {
		return nil, err
	}
	found, err := s.entries(ctx, nil)
	if err != nil {
		return nil, err
	}
	var all []Stat
	for scope, entries := range found {
		st := Stat{Scope: scope, Entries: int64(len(entries)), Oldest: entries[0].Head.State.LastSaid}
		for _, h := range entries {
			state := h.Head.State
			st.Bytes += state.Size
			if isExpired(state, now) {
				st.Expired++
			}
			if state.LastSaid.Before(st.Oldest) {
				st.Oldest = state.LastSaid
			}
			if state.LastSaid.After(st.Used) {
				st.Used = state.LastSaid
			}
		}
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b Stat) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Step, b.Step), strings.Compare(a.Version, b.Version))
	})
	return all, nil
}

// Clear removes the entries of the scopes that match, or all entries of the application if match is nil.
func (s *Shared) Clear(ctx context.Context, match func(Scope) bool) (removed int64, err error) {
	return s.remove(ctx, match, func(memstore.State) bool { return true })
}

// remove removes the entries of the scopes that match for which a condition holds.
func (s *Shared) remove(ctx context.Context, match func(Scope) bool, selects func(memstore.State) bool) (removed int64, err error) {
	found, err := s.entries(ctx, match)
	if err != nil {
		return 0, err
	}
	for _, entries := range found {
		n, err := s.removeAll(ctx, slices.DeleteFunc(entries, func(h memstore.SessionHead) bool { return !selects(h.Head.State) }))
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// unusedBefore returns a func that selects expired entries and entries stored before a time.
func (s *Shared) unusedBefore(ctx context.Context, before time.Time) (func(memstore.State) bool, error) {
	now, err := s.clock.Now(ctx, s.store)
	return func(state memstore.State) bool { return isExpired(state, now) || state.LastSaid.Before(before) }, err
}

// Unused returns the number and the size of the entries of the scopes that match, which are expired or were stored before a time.
func (s *Shared) Unused(ctx context.Context, match func(Scope) bool, before time.Time) (entries, bytes int64, err error) {
	selects, err := s.unusedBefore(ctx, before)
	if err != nil {
		return 0, 0, err
	}
	found, err := s.entries(ctx, match)
	for _, all := range found {
		for _, h := range all {
			if selects(h.Head.State) {
				entries, bytes = entries+1, bytes+h.Head.State.Size
			}
		}
	}
	return entries, bytes, err
}

// Prune removes the entries of Unused and returns their number.
func (s *Shared) Prune(ctx context.Context, match func(Scope) bool, before time.Time) (removed int64, err error) {
	selects, err := s.unusedBefore(ctx, before)
	if err != nil {
		return 0, err
	}
	return s.remove(ctx, match, selects)
}
