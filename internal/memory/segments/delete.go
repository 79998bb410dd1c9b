package segments

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/memory/store"
)

// unlisted is how long pieces without a list are kept: a process may be about to list them.
const unlisted = time.Hour

// Delete deletes the stored index of a session. It does nothing if there is none.
func Delete(ctx context.Context, s store.Store, key store.Key) error {
	if err := s.Delete(ctx, listKey(key)); err != nil {
		return err
	}
	return deletePieces(ctx, s, key, func(string) bool { return true })
}

// deletePieces deletes the pieces of segments of a session by their ids.
func deletePieces(ctx context.Context, s store.Store, key store.Key, selected func(id string) bool) error {
	const page = 500
	memory, prefix := StoredMemory(key.Memory), listKey(key).Session
	for q := (store.SessionQuery{Prefix: prefix, Limit: page}); ; {
		all, err := store.ListSessions(ctx, s, memory, q)
		if err != nil {
			return err
		}
		var gone []store.SessionHead
		for _, l := range all {
			q.After = l.Session
			if session, id := pieceOf(l.Session); id != "" && session == key.Session && selected(id) {
				gone = append(gone, l)
			}
		}
		if _, err := store.RemoveAll(ctx, s, memory, gone); err != nil || len(all) < page {
			return err
		}
	}
}

// pieceOf returns the session and the segment of a stored session; an empty id if it is a list.
func pieceOf(stored string) (session, id string) {
	if session, isList := strings.CutSuffix(stored, "\x00"); isList {
		return session, ""
	}
	at := len(stored) - pieceDigits
	if at < 1 { // not written by this package
		return stored, ""
	}
	return stored[:at-1], stored[at:][:idDigits]
}

// Prune deletes what belongs to sessions of a memory that no longer exist or are others by now, and the pieces that no list has: a process
// left them that died meanwhile.
func Prune(ctx context.Context, s store.Store, memory string, now time.Time) error {
	var key store.Key
	var exists bool
	listed, begun := map[string]bool{}, false
	var gone []store.SessionHead
	for l, err := range s.Sessions(ctx, StoredMemory(memory)) {
		if err != nil {
			return err
		}
		session, id := pieceOf(l.Session)
		if !begun || session != key.Session {
			key, begun = store.Key{Memory: memory, Session: session}, true
			if exists, listed, err = read(ctx, s, key); err != nil {
				return err
			}
		}
		if !exists || id != "" && !listed[id] && now.Sub(l.Head.State.LastSaid) > unlisted {
			gone = append(gone, l)
		}
	}
	_, err := store.RemoveAll(ctx, s, StoredMemory(memory), gone)
	return err
}

// read returns whether a session exists that the stored list covers, if there is one, and the segments of this list.
func read(ctx context.Context, s store.Store, key store.Key) (exists bool, listed map[string]bool, err error) {
	stored, err := s.Head(ctx, listKey(key))
	if isCorrupt(err) {
		return false, nil, nil
	}
	if err != nil {
		return false, nil, err
	}
	head, err := s.Head(ctx, key) // not before the list, which would be the newer one
	if err != nil || head.Version == 0 {
		return false, nil, err
	}
	var x Index
	readable := json.Unmarshal(stored.Values[valueName], &x.list) == nil
	if stored.Version != 0 && (!readable || !x.covers(head)) {
		return false, nil, nil
	}
	listed = map[string]bool{}
	for _, p := range x.list.Segments {
		listed[p.ID] = true
	}
	return true, listed, nil
}
