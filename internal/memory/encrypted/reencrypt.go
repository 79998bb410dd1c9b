package encrypted

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// ReencryptReport is what Reencrypt has done.
type ReencryptReport struct {
	Sessions int   // sessions that were encrypted again, wholly
	Messages int64 // messages that were encrypted again
	Events   int64 // events that were encrypted again
	Same     int   // sessions that had nothing to encrypt
}

const (
	maxRounds       = 8    // of one session in which other writers use another key meanwhile
	maxConflicts    = 1000 // of one replacement with other writers
	conflictPause   = 2 * time.Millisecond
	replacedAtOnce  = 256     // messages of one replacement
	replacedBytes   = 4 << 20 // about the most bytes of their records
	sessionsAtOnce  = 500     // heads read at a time
	sameIncarnation = 1 << 40 // the most changes of a session between its creation and its deletion
)

// errNoReplacer reports that the inner store cannot replace records.
var errNoReplacer = errors.New("the store cannot replace records in place: it does not implement store.Replacer; copy its sessions to another store instead")

// Reencrypt encrypts the records of the sessions of a memory that are encrypted with one
// of the old keys, or not at all, with Keys.Key: in place, while other processes read and
// write, which must have all keys. What is stored is verified first. Afterwards each such session
// is read with Keys.Key alone, and its messages and events are compared with those from
// before by their numbers and a digest. After an error or a crash, calling it again
// continues with the records that are left.
func (s *Store) Reencrypt(ctx context.Context, mem string) (ReencryptReport, error) {
	var report ReencryptReport
	inner, ok := s.inner.(store.Replacer)
	if !ok {
		return report, errNoReplacer
	}
	for q := (store.SessionQuery{Limit: sessionsAtOnce}); ; {
		page, err := store.ListSessions(ctx, s.inner, mem, q)
		if err != nil {
			return report, err
		}
		for _, l := range page {
			q.After = l.Session
			r := &reencryption{store: s, replacer: inner, cipher: s.cipherFor(store.Key{Memory: mem, Session: l.Session}), report: &report}
			if err := r.session(ctx); err != nil {
				return report, err
			}
		}
		if len(page) < sessionsAtOnce {
			return report, nil
		}
	}
}

// reencryption encrypts one session again.
type reencryption struct {
	store    *Store
	replacer store.Replacer
	cipher   *sessionCipher
	report   *ReencryptReport
	events   *readEvents // of the newest attempt to replace the head; nil for none
}

// session encrypts the session; again if another writer meanwhile used another key.
func (r *reencryption) session(ctx context.Context) error {
	for round := range maxRounds {
		head, known, err := r.store.readHead(ctx, r.cipher)
		if err != nil {
			return err
		}
		old, err := r.hasOld(ctx, head, known)
		if err != nil {
			return err
		}
		if !old {
			switch {
			case head.Version == 0: // it was deleted
			case round == 0:
				r.report.Same++
			default:
				r.report.Sessions++
			}
			return nil
		}
		before, err := r.digest(ctx, r.store, known.seal.State.Last, -1)
		if err != nil {
			return err
		}
		messages, events, err := r.replaceAll(ctx, known)
		r.report.Messages, r.report.Events = r.report.Messages+messages, r.report.Events+events
		if errors.Is(err, store.ErrConflict) {
			continue // it was deleted, or created again
		}
		if err != nil {
			return err
		}
		if err := r.verify(ctx, head.Version, before); err != nil {
			return err
		}
	}
	return r.cipher.error(store.Locked, "messages", "other writers still use another key; give the new key to all processes and try again")
}

// isNew reports whether a record is encrypted with the newest key, in the newest format.
func (r *reencryption) isNew(record []byte) bool {
	return formatOf(record) == formatSealed && [idSize]byte(record[prefixSize:]) == r.store.keys[0].id
}

// isNewEvent reports whether an event has nothing to encrypt.
func (r *reencryption) isNewEvent(e *store.Event) bool {
	return e.Reason == "" || isSealedEvent(e) && r.isNew(decodeRecord(e.Reason[len(reasonPrefix):]))
}

// hasOld reports whether the session has records that are to be encrypted. It decrypts none
// of them, apart from the seal of the head.
func (r *reencryption) hasOld(ctx context.Context, head store.Head, known *verifiedHead) (bool, error) {
	if head.Version == 0 {
		return false, nil
	}
	if !known.sealed || known.seal.Before > 0 {
		return true, nil
	}
	raw, err := r.store.inner.Head(ctx, r.cipher.session)
	if err != nil {
		return false, err
	}
	for _, record := range raw.Values {
		if !r.isNew(record) {
			return true, nil
		}
	}
	for e, err := range r.store.inner.Events(ctx, r.cipher.session) {
		if err != nil || !r.isNewEvent(&e) {
			return true, err
		}
	}
	for e, err := range r.store.inner.Entries(ctx, r.cipher.session, store.Query{}) {
		if err != nil || !r.isNew(recordOf(e)) {
			return true, err
		}
	}
	return false, nil
}

// replaceAll encrypts the session: a head without a seal gets one first, because records of
// the format that needs it are an error otherwise.
func (r *reencryption) replaceAll(ctx context.Context, known *verifiedHead) (messages, events int64, err error) {
	if !known.sealed {
		if events, err = r.replaceHead(ctx, false); err != nil {
			return 0, events, err
		}
	}
	if messages, err = r.replaceMessages(ctx); err != nil {
		return messages, events, err
	}
	more, err := r.replaceHead(ctx, true)
	return messages, events + more, err
}

// replaceMessages encrypts the messages in replacements of some, which change nothing for
// other readers and writers.
func (r *reencryption) replaceMessages(ctx context.Context) (replaced int64, err error) {
	_, known, err := r.store.readHead(ctx, r.cipher)
	if err != nil {
		return 0, err
	}
	check := reader{store: r.store, cipher: r.cipher, head: known, next: 1}
	batch, size := map[int64]chat.Message{}, 0
	flush := func() error {
		if err := r.retry(ctx, known.version, func(version int64) error {
			return r.replacer.Replace(ctx, r.cipher.session, store.Replacement{Version: version, Next: version, Messages: batch})
		}); err != nil {
			return err
		}
		replaced += int64(len(batch))
		batch, size = map[int64]chat.Message{}, 0
		return nil
	}
	for e, err := range r.store.inner.Entries(ctx, r.cipher.session, store.Query{To: max(known.seal.State.Last, 1)}) {
		if err == nil {
			err = check.checkEntry(e)
		}
		if err != nil {
			return replaced, r.unlessGone(ctx, known, err)
		}
		check.next++
		if r.isNew(recordOf(e)) {
			continue
		}
		plain, err := r.cipher.decryptEntry(e)
		if err != nil {
			return replaced, r.unlessGone(ctx, known, err)
		}
		encrypted, err := r.cipher.encryptEntry(plain)
		if err != nil {
			return replaced, err
		}
		batch[e.Seq] = encrypted.Message
		if size += len(recordOf(encrypted)); len(batch) == replacedAtOnce || size > replacedBytes {
			if err := flush(); err != nil {
				return replaced, err
			}
		}
	}
	if len(batch) == 0 {
		return replaced, nil
	}
	return replaced, flush()
}

// unlessGone returns ErrConflict in place of err if the session was deleted meanwhile.
func (r *reencryption) unlessGone(ctx context.Context, known *verifiedHead, err error) error {
	head, headErr := r.store.inner.Head(ctx, r.cipher.session)
	if headErr == nil && !continues(known.version, head.Version) {
		return store.ErrConflict
	}
	return err
}

// continues reports whether a session that had the version before was not deleted since.
func continues(before, now int64) bool { return now >= before && now-before < sameIncarnation }

// retry calls replace with the session's version until no other writer is faster. It
// returns ErrConflict if the session was deleted since it had the version start.
func (r *reencryption) retry(ctx context.Context, start int64, replace func(version int64) error) error {
	version := start
	for range maxConflicts {
		err := replace(version)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(conflictPause):
		}
		head, err := r.store.inner.Head(ctx, r.cipher.session)
		if err != nil {
			return err
		}
		if version = head.Version; !continues(start, version) {
			return store.ErrConflict
		}
	}
	return r.cipher.contentionError()
}

// replaceHead encrypts the named values and the reasons of the events, and makes a seal for
// them, which a new version belongs to. With complete set, all messages are encrypted in
// the format that the seal counts.
func (r *reencryption) replaceHead(ctx context.Context, complete bool) (events int64, err error) {
	for range maxConflicts {
		replacement, err := r.newHead(ctx, complete)
		if err == nil {
			err = r.replacer.Replace(ctx, r.cipher.session, replacement)
		}
		if !errors.Is(err, store.ErrConflict) {
			r.events = nil
			return int64(len(replacement.Events)), err
		}
		if head, err := r.store.inner.Head(ctx, r.cipher.session); err != nil || head.Version == 0 {
			return 0, errors.Join(err, store.ErrConflict)
		}
	}
	return 0, r.cipher.contentionError()
}

// newHead returns the replacement of the head and of the events; ErrConflict if the session
// changes meanwhile.
func (r *reencryption) newHead(ctx context.Context, complete bool) (store.Replacement, error) {
	var out store.Replacement
	head, known, err := r.store.readHead(ctx, r.cipher)
	if err != nil {
		return out, err
	}
	if head.Version == 0 {
		return out, store.ErrConflict
	}
	seal := *known.seal
	switch {
	case !known.sealed:
		seal.Before = head.State.Last
	case complete:
		seal.Before = 0
	}
	events, err := r.newEvents(ctx, known)
	if err != nil {
		return out, err
	}
	seal.Events, seal.Chain, out.Events = events.stored.events, events.chain, events.changed
	plain := make(map[string][]byte, len(head.Values))
	for name, record := range head.Values {
		if plain[name], err = r.cipher.decryptValue(name, record); err != nil {
			return out, err
		}
	}
	if out.Values, err = r.cipher.encryptValues(plain); err != nil {
		return out, err
	}
	seal.digests = make(map[string][]byte, len(out.Values))
	for name, record := range out.Values {
		seal.digests[name] = digestOf(record)
	}
	out.Version, out.Next = head.Version, store.NextVersion(head.Version)
	out.Values[sealName], err = r.cipher.encodeSeal(out.Next, &seal)
	return out, err
}

// readEvents are the events at the beginning of a session that were read and verified.
type readEvents struct {
	stored  eventHash             // of the events as they are stored
	chain   []byte                // their running hash when those of changed are replaced
	changed map[int64]store.Event // the events to replace, by index
}

// add adds the next event.
func (p *readEvents) add(r *reencryption, e store.Event) error {
	if err := p.stored.add(&e); err != nil {
		return err
	}
	if !r.isNewEvent(&e) {
		plain, err := r.cipher.decryptEvent(e)
		if err != nil {
			return err
		}
		if e, err = r.cipher.encryptEvent(plain); err != nil {
			return err
		}
		p.changed[p.stored.events-1] = e
	}
	var err error
	p.chain, err = chainHash(p.chain, &e)
	return err
}

// newEvents reads the events that a head counts and verifies them. If the session changed since an
// earlier call, it reads only the added ones, so that it keeps up with other writers.
func (r *reencryption) newEvents(ctx context.Context, known *verifiedHead) (*readEvents, error) {
	p := &readEvents{stored: eventHash{known: known}, changed: map[int64]store.Event{}}
	rest := r.store.inner.Events(ctx, r.cipher.session)
	if old := r.events; old != nil && old.stored.events > 0 && known.sealed && known.seal.Events >= old.stored.events {
		*p = *old
		p.stored.known, p.changed = known, maps.Clone(old.changed)
		added, err := r.addedEvents(ctx, known.seal.Events-old.stored.events)
		if err != nil {
			return nil, err
		}
		rest = added
	}
	for e, err := range rest {
		if err == nil && p.stored.done() {
			p.stored.more = true
			break
		}
		if err == nil {
			err = p.add(r, e)
		}
		if err != nil {
			return nil, err
		}
	}
	if p.stored.matches() && !p.stored.more {
		r.events = p
		return p, nil
	}
	_, now, err := r.store.readHead(ctx, r.cipher)
	switch {
	case err != nil:
		return nil, err
	case !now.unchangedSince(known):
	case r.events == nil:
		return nil, r.cipher.error(store.Corrupt, "events", "an event was added, removed or modified after the session was sealed")
	default:
		r.events = nil // another process has replaced events that were read
	}
	return nil, fmt.Errorf("the session changed while its events were read: %w", store.ErrConflict)
}

// addedEvents returns the newest n events, in order.
func (r *reencryption) addedEvents(ctx context.Context, n int64) (iter.Seq2[store.Event, error], error) {
	var added []store.Event
	if n > 0 {
		for e, err := range store.EventsReversed(ctx, r.store.inner, r.cipher.session) {
			if err != nil {
				return nil, err
			}
			if added = append(added, e); int64(len(added)) == n {
				break
			}
		}
	}
	slices.Reverse(added)
	return func(yield func(store.Event, error) bool) {
		for _, e := range added {
			if !yield(e, nil) {
				return
			}
		}
	}, nil
}
