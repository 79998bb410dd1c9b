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

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/timer"
	"github.com/qtype-dev/qtype/memory/store"
)

const (
	sharedValue    = "entry" // the name of the value of an entry: the first byte of its codec, and the packed entry
	maxSharedBytes = 8 << 20 // the largest entry: stores of memories are made for smaller values
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

// Shared keeps entries as records of an application, which all its processes share. Reading does not change it: the oldest entries are evicted, not the least recently used ones. It is safe for
// concurrent use.
type Shared struct {
	records store.Records

	mu    sync.Mutex
	added map[string]int64 // bytes since the last eviction, by step
}

// NewShared returns the entries of an application, whose store the caller closes.
func NewShared(app store.Application) *Shared {
	return &Shared{records: app.Records(appstate.Cache), added: map[string]int64{}}
}

// Place returns SharedPlace.
func (s *Shared) Place() string { return SharedPlace }

// Close does nothing: the store is that of the memories.
func (s *Shared) Close() error { return nil }

// stepPrefix returns the beginning of the ids of the entries of a step, in any version.
func (s *Shared) stepPrefix(scope Scope) string {
	return url.PathEscape(scope.Namespace) + "/" + url.PathEscape(scope.Step) + "/"
}

// id returns the id of the record of an entry.
func (s *Shared) id(scope Scope, key Key) string {
	return s.stepPrefix(scope) + url.PathEscape(scope.Version) + "/" + hex.EncodeToString(key[:])
}

// scopeOf returns the scope of an entry by its id.
func scopeOf(id string) (scope Scope, ok bool) {
	parts := strings.Split(id, "/")
	if len(parts) != 4 {
		return Scope{}, false
	}
	var errs [3]error
	scope.Namespace, errs[0] = url.PathUnescape(parts[0])
	scope.Step, errs[1] = url.PathUnescape(parts[1])
	scope.Version, errs[2] = url.PathUnescape(parts[2])
	return scope, errors.Join(errs[:]...) == nil
}

// Get returns an entry that has not expired.
func (s *Shared) Get(ctx context.Context, scope Scope, key Key, p Policy) (entry []byte, found bool, err error) {
	rec, err := s.records.Get(timer.WithoutOutages(ctx), s.id(scope, key))
	if failed, ok := errors.AsType[*store.Error](err); ok && (failed.Problem == store.WrongKey || failed.Problem == store.Corrupt) {
		return nil, false, &Error{Path: SharedPlace, Message: "an entry of step " + scope.Step + " is not readable", Err: err, Damaged: true}
	}
	if err != nil || rec.Version == 0 {
		return nil, false, err
	}
	now, err := s.records.Application().Time(ctx)
	if err != nil {
		return nil, false, err
	}
	if p.isOlder(rec.Stored, now) {
		return nil, false, nil
	}
	value := rec.Values[sharedValue]
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
	now, err := s.records.Application().Time(ctx)
	if err != nil {
		return false, err
	}
	id := s.id(scope, key)
	ctx = timer.WithoutOutages(ctx)
	before, err := s.records.Get(ctx, id)
	if err != nil {
		return false, err
	}
	c := store.RecordChange{Version: before.Version, Next: store.NextVersion(before.Version), Stored: now, Size: size}
	if p.TTL > 0 {
		c.Expires = now.Add(p.TTL)
	}
	c.Values = map[string][]byte{sharedValue: append([]byte{codec[0]}, packed...)}
	err = s.records.Write(ctx, id, c)
	switch {
	case errors.Is(err, store.ErrConflict):
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
	all, err := s.list(ctx, prefix)
	if err != nil {
		return err
	}
	gone := slices.DeleteFunc(slices.Clone(all), func(e entryHead) bool { return !e.expired })
	left := slices.DeleteFunc(all, func(e entryHead) bool { return e.expired })
	total := int64(0)
	for _, e := range left {
		total += e.Size
	}
	if total > limit {
		slices.SortFunc(left, func(a, b entryHead) int { return a.Stored.Compare(b.Stored) })
		for _, e := range left {
			if float64(total) <= evictTo*float64(limit) {
				break
			}
			gone, total = append(gone, e), total-e.Size
		}
	}
	_, err = s.removeAll(ctx, gone)
	return err
}

// entryHead is an entry of a list.
type entryHead struct {
	store.RecordHead
	expired bool
}

// removeAll removes entries that have not changed, and returns their number.
func (s *Shared) removeAll(ctx context.Context, entries []entryHead) (removed int64, err error) {
	heads := make([]store.RecordHead, len(entries))
	for i, e := range entries {
		heads[i] = e.RecordHead
	}
	n, err := s.records.Remove(ctx, heads...)
	return int64(n), err
}

// list returns the entries whose ids have a prefix, also those that have expired.
func (s *Shared) list(ctx context.Context, prefix string) ([]entryHead, error) {
	now, err := s.records.Application().Time(ctx)
	if err != nil {
		return nil, err
	}
	var all []entryHead
	for h, err := range s.records.List(ctx, store.RecordQuery{Prefix: prefix, Expired: true}) {
		if err != nil {
			return nil, err
		}
		all = append(all, entryHead{h, h.IsExpired(now)})
	}
	return all, nil
}

// Drop removes an entry, if it exists.
func (s *Shared) Drop(ctx context.Context, scope Scope, key Key) error {
	return s.records.Delete(timer.WithoutOutages(ctx), s.id(scope, key))
}

// entries returns the entries of the application whose scopes match, by scope; all if match is nil.
func (s *Shared) entries(ctx context.Context, match func(Scope) bool) (map[Scope][]entryHead, error) {
	all, err := s.list(ctx, "")
	if err != nil {
		return nil, err
	}
	found := map[Scope][]entryHead{}
	for _, e := range all {
		if scope, ok := scopeOf(e.ID); ok && (match == nil || match(scope)) {
			found[scope] = append(found[scope], e)
		}
	}
	return found, nil
}

// Stats returns the entries by namespace, step and version. The time of the last use is when the newest entry was stored.
func (s *Shared) Stats(ctx context.Context) ([]Stat, error) {
	found, err := s.entries(ctx, nil)
	if err != nil {
		return nil, err
	}
	var all []Stat
	for scope, entries := range found {
		st := Stat{Scope: scope, Entries: int64(len(entries)), Oldest: entries[0].Stored}
		for _, e := range entries {
			st.Bytes += e.Size
			if e.expired {
				st.Expired++
			}
			if e.Stored.Before(st.Oldest) {
				st.Oldest = e.Stored
			}
			if e.Stored.After(st.Used) {
				st.Used = e.Stored
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
	return s.remove(ctx, match, func(entryHead) bool { return true })
}

// remove removes the entries of the scopes that match for which a condition holds.
func (s *Shared) remove(ctx context.Context, match func(Scope) bool, selects func(entryHead) bool) (removed int64, err error) {
	found, err := s.entries(ctx, match)
	if err != nil {
		return 0, err
	}
	for _, entries := range found {
		n, err := s.removeAll(ctx, slices.DeleteFunc(entries, func(e entryHead) bool { return !selects(e) }))
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// unusedBefore returns a func that selects expired entries and entries stored before a time.
func unusedBefore(before time.Time) func(entryHead) bool {
	return func(e entryHead) bool { return e.expired || e.Stored.Before(before) }
}

// Unused returns the number and the size of the entries of the scopes that match, which are expired or were stored before a time.
func (s *Shared) Unused(ctx context.Context, match func(Scope) bool, before time.Time) (entries, bytes int64, err error) {
	selects := unusedBefore(before)
	found, err := s.entries(ctx, match)
	for _, all := range found {
		for _, e := range all {
			if selects(e) {
				entries, bytes = entries+1, bytes+e.Size
			}
		}
	}
	return entries, bytes, err
}

// Prune removes the entries of Unused and returns their number.
func (s *Shared) Prune(ctx context.Context, match func(Scope) bool, before time.Time) (removed int64, err error) {
	return s.remove(ctx, match, unusedBefore(before))
}
