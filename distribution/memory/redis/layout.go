package redis

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/memory/store"
)

// The keys of a session have one hash tag, so they are on one node of a cluster
// and one script may change them all:
//
//	qtype:{digest}:head     hash: format, version, state (JSON), change, born, memory, session; v:NAME for each named value
//	qtype:{digest}:messages list of "seq turn tokens microseconds failed message", in order; the message is JSON
//	qtype:{digest}:ids      hash: message id → seq, of the entries that did not fail
//	qtype:{digest}:events   list of JSON
//
// A session of format 1 has a stream in place of the list of messages. It is read and
// extended as it is, and becomes a list when its records are replaced:
//
//	qtype:{digest}:entries  stream: the ids are SEQ-0; h is "turn tokens microseconds failed", m the message as JSON
//
// A sorted set lists the sessions of a memory in order; see member:
//
//	qtype:{digest}:sessions
//
// The list may be on another node than the session, so the two cannot change
// atomically, and the list is only a hint: a member is added before its session
// is created, and removed after it was deleted or when another writer was faster.
// A crash in between leaves a member without a session, which listing skips. A
// session that is created again gets a new member, so that the end of a deletion
// never hides it.

// format is the version of this layout. Each head holds that of its session.
const format = 2

// names holds the keys of one session.
type names struct {
	head, stream, ids, events, messages string
}

// slice returns the keys in the order that the scripts expect.
func (n names) slice() []string { return []string{n.head, n.stream, n.ids, n.events, n.messages} }

func (s *Store) names(k store.Key) names {
	// The length distinguishes ("ab", "c") from ("a", "bc").
	base := s.server.Prefix + "{" + digest(strconv.Itoa(len(k.Memory))+":"+k.Memory+k.Session) + "}:"
	return names{base + "head", base + "entries", base + "ids", base + "events", base + "messages"}
}

// list returns the key of a memory's sorted set of sessions.
func (s *Store) list(mem string) string {
	return s.server.Prefix + "{" + digest("list:"+mem) + "}:sessions"
}

// digest returns 128 bits of a hash of text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// terminator ends the session's id within a member. Zero bytes of the id are
// escaped by 0xff, so that members sort as the ids do.
const terminator = "\x00\x01"

// member returns the list's member for a session; born is the number of the change
// that created it.
func member(session string, born int64) string {
	return string(binary.BigEndian.AppendUint64([]byte(escaped(session)+terminator), uint64(born)))
}

// escaped returns what the member of a session begins with. It sorts as the id does.
func escaped(session string) string { return strings.ReplaceAll(session, "\x00", "\x00\xff") }

// sessionOf returns the session's id; ok is false if member is malformed.
func sessionOf(member string) (session string, ok bool) {
	i := len(member) - 8 - len(terminator)
	if i < 0 || !bytes.HasPrefix([]byte(member[i:]), []byte(terminator)) {
		return "", false
	}
	return strings.ReplaceAll(member[:i], "\x00\xff", "\x00"), true
}
