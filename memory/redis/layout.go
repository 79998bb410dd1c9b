package redis

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/memory"
)

// A session's keys have one hash tag, so they lie on one node of a cluster and
// one script may change them all:
//
//	qtype:{digest}:head     hash: format, version, state (JSON), change, born, memory, session; a field v:NAME for each named value
//	qtype:{digest}:entries  stream: the ids are SEQ-0; h is "turn tokens microseconds failed", m the message as JSON
//	qtype:{digest}:ids      hash: message id → seq, of the entries that did not fail
//	qtype:{digest}:events   list of JSON
//
// and the sessions of a memory are listed in order by a sorted set, whose
// members are made by member:
//
//	qtype:{digest}:sessions
//
// The list may lie on another node than the session, so the two cannot change in
// one step. The list is therefore only a hint: a member is put there before its
// session is made, and taken away after it is gone, or when another writer was
// faster. Who dies in between leaves a member without a session, which listing
// passes over. Each birth of a session has a member of its own, so that the end
// of one life never hides the next.

// format is how sessions are laid out; each head says with which it was written.
const format = 1

// names are the keys of one session.
type names struct {
	head, entries, ids, events string
}

// slice is in the order in which the scripts expect them.
func (n names) slice() []string { return []string{n.head, n.entries, n.ids, n.events} }

func (s *Store) names(k memory.Key) names {
	// The length keeps ("ab", "c") apart from ("a", "bc").
	base := s.prefix + "{" + digest(strconv.Itoa(len(k.Memory))+":"+k.Memory+k.Session) + "}:"
	return names{base + "head", base + "entries", base + "ids", base + "events"}
}

// list is the key of a memory's sorted set of sessions.
func (s *Store) list(mem string) string { return s.prefix + "{" + digest("list:"+mem) + "}:sessions" }

// digest is 128 bits that stand for an arbitrary text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// end ends a session's id within a member; an id's own zero bytes are followed
// by 0xff, so that members sort as the ids do.
const end = "\x00\x01"

// member stands for one life of a session: born is the number of the change that began it.
func member(session string, born int64) string {
	escaped := strings.ReplaceAll(session, "\x00", "\x00\xff")
	return string(binary.BigEndian.AppendUint64([]byte(escaped+end), uint64(born)))
}

// sessionOf is the session's id; ok is false for what no member looks like.
func sessionOf(member string) (session string, ok bool) {
	i := len(member) - 8 - len(end)
	if i < 0 || !bytes.HasPrefix([]byte(member[i:]), []byte(end)) {
		return "", false
	}
	return strings.ReplaceAll(member[:i], "\x00\xff", "\x00"), true
}
