package search_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/ranking"
	"github.com/qtype-dev/qtype/internal/memory/segments"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/search"
	memstore "github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// sayMany adds as many messages as are worth stored words, one of them with a rare word.
func sayMany(t *testing.T, m *memory.Memory, session, rare string) {
	var all []chat.Message
	for i := range segments.MinMessages {
		all = append(all, chat.Text(chat.User, fmt.Sprintf("the bakery sold loaf%d of bread%d to a baker", i%211, i%1009)))
	}
	all[50] = chat.Text(chat.User, "a note about "+rare)
	testkit.Must(t, m.Append(t.Context(), session, all...))
}

// storedWords returns the bytes of all stored words.
func storedWords(t *testing.T, s memory.Store) (all []byte) {
	var sessions []string
	for l, err := range s.Sessions(t.Context(), segments.StoredMemory("m")) {
		testkit.Must(t, err)
		sessions = append(sessions, l.Session)
	}
	for _, session := range sessions {
		head, err := s.Head(t.Context(), memory.Key{Memory: segments.StoredMemory("m"), Session: session})
		testkit.Must(t, err)
		for _, value := range head.Values {
			all = append(all, value...)
		}
	}
	return all
}

// indexOf returns a search of an index of the messages of a session.
func indexOf(t *testing.T, m *memory.Memory, session string) func(text string, limit int) (contents []string) {
	var c ranking.Corpus
	var texts []string
	for e, err := range m.History(t.Context(), session) {
		testkit.Must(t, err)
		c.Add(ranking.Document{Seq: e.Seq, Time: e.Time, Name: e.Message.Name, Text: e.Message.Text()})
		texts = append(texts, e.Message.Text())
	}
	return func(text string, limit int) (contents []string) {
		results, err := c.Rank(t.Context(), ranking.Query{Text: text, Limit: limit, Whole: true})
		testkit.Must(t, err)
		for _, r := range results {
			contents = append(contents, session+": "+texts[r.Doc])
		}
		return contents
	}
}

// TestSearch_StoredWords checks that new processes find with stored words what an index of the messages finds, that encrypted ones
// have no readable word, and that a process goes on when another one has merged the segments that it reads.
func TestSearch_StoredWords(t *testing.T) {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw)
	key, err := encrypted.ParseKey(base64.StdEncoding.EncodeToString(raw))
	testkit.Must(t, err)
	sealed := memory.NewInProcess()
	for name, store := range map[string]memory.Store{"in process": memory.NewInProcess(), "encrypted": encrypted.New(sealed, "here", encrypted.Keys{Key: key})} {
		t.Run(name, func(t *testing.T) {
			m := newMemory(t, memory.Config{}, store)
			sayMany(t, m, "s", "zanzibar")
			find(t, search.New(m), search.Query{Text: "bread7", Scope: search.Session("s")})
			if len(storedWords(t, store)) == 0 {
				t.Fatal("no words were stored")
			}
			running := search.New(newMemory(t, memory.Config{}, store))
			say(t, m, "s", "a tail about zanzibar")
			ranked := indexOf(t, m, "s")
			for _, text := range []string{"zanzibar", "bread7 loaf3", "zanzibr", "baking", "unknown"} {
				q := search.Query{Text: text, Scope: search.Session("s"), Limit: 10}
				if got, want := find(t, running, q), ranked(text, 10); !slices.Equal(got, want) {
					t.Errorf("%s: %q, want %q", text, got, want)
				}
			}
			sayMany(t, m, "s", "timbuktu")
			testkit.Must(t, m.StoreWords(t.Context(), "s"))
			ranked = indexOf(t, m, "s")
			for _, text := range []string{"loaf99", "timbuktu"} { // were not read before
				q := search.Query{Text: text, Scope: search.Session("s"), Limit: 3}
				if got, want := find(t, running, q), ranked(text, 3); !slices.Equal(got, want) {
					t.Errorf("after a merge, %s: %q, want %q", text, got, want)
				}
			}
			if len(storedWords(t, store)) == 0 {
				t.Error("words were deleted that another process had stored")
			}
		})
	}
	stored := storedWords(t, sealed)
	for _, word := range []string{"zanzibar", "timbuktu", "bakeri", "loaf"} {
		if len(stored) == 0 || bytes.Contains(stored, []byte(word)) {
			t.Errorf("%q is readable in %d encrypted bytes", word, len(stored))
		}
	}
}

// TestSearch_StoredWordsAreDeleted checks that no stored words are left of what was edited, deleted, forgotten or has expired.
func TestSearch_StoredWordsAreDeleted(t *testing.T) {
	now := time.Now()
	store := memory.NewInProcess()
	m := newMemory(t, memory.Config{TTL: time.Hour, Now: func() time.Time { return now }}, store)
	for name, remove := range map[string]func() error{
		"edit":   func() error { return m.Edit(t.Context(), "u/s", 51, chat.Text(chat.User, "nothing")) },
		"delete": func() error { return m.Delete(t.Context(), "u/s", 51) },
		"clear":  func() error { return m.Clear(t.Context(), "u/s") },
		"forget": func() error { _, err := m.ForgetUser(t.Context(), "u"); return err },
		"expire": func() error { now = now.Add(2 * time.Hour); _, err := m.Prune(t.Context()); return err },
		"expire and write": func() error {
			now = now.Add(2 * time.Hour)
			return m.Append(t.Context(), "u/s", chat.Text(chat.User, "anew"))
		},
	} {
		sayMany(t, m, "u/s", "zanzibar")
		testkit.Must(t, m.StoreWords(t.Context(), "u/s"))
		if !bytes.Contains(storedWords(t, store), []byte("zanzibar")) {
			t.Fatal("the words were not stored")
		}
		testkit.Must(t, remove())
		if left := storedWords(t, store); len(left) > 0 {
			t.Errorf("%s: %d bytes are left", name, len(left))
		}
		for _, text := range find(t, search.New(m), search.Query{Text: "zanzibar", Scope: search.Session("u/s")}) {
			if strings.Contains(text, "zanzibar") {
				t.Errorf("%s: found %q", name, text)
			}
		}
		if bytes.Contains(storedWords(t, store), []byte("zanzibar")) {
			t.Errorf("%s: the word was stored again", name)
		}
		testkit.Must(t, m.Clear(t.Context(), "u/s"))
	}
}

// interrupted is a store that does something before the list of stored words changes.
type interrupted struct {
	memory.Store
	before func()
}

func (s *interrupted) Apply(ctx context.Context, key memory.Key, c memstore.Change) error {
	if before := s.before; before != nil && key.Memory == segments.StoredMemory("m") && strings.HasSuffix(key.Session, "\x00") {
		s.before = nil
		before()
	}
	return s.Store.Apply(ctx, key, c)
}

// TestStoreWords_MessageIsDeletedMeanwhile checks that words do not stay that were read before their message was deleted.
func TestStoreWords_MessageIsDeletedMeanwhile(t *testing.T) {
	for name, remove := range map[string]func(*memory.Memory) error{
		"message": func(m *memory.Memory) error { return m.Delete(t.Context(), "s", 51) },
		"session": func(m *memory.Memory) error { return m.Clear(t.Context(), "s") },
	} {
		s := &interrupted{Store: memory.NewInProcess()}
		m := newMemory(t, memory.Config{}, s)
		sayMany(t, m, "s", "zanzibar")
		s.before = func() { testkit.Must(t, remove(m)) }
		testkit.Must(t, m.StoreWords(t.Context(), "s"))
		if s.before != nil || bytes.Contains(storedWords(t, s), []byte("zanzibar")) {
			t.Errorf("%s: the word is still stored", name)
		}
	}
}

// unwritable is a store that has no room for stored words.
type unwritable struct {
	memory.Store
	tried int
}

func (s *unwritable) Apply(ctx context.Context, key memory.Key, c memstore.Change) error {
	if key.Memory == segments.StoredMemory("m") {
		s.tried++
		return errors.New("no room")
	}
	return s.Store.Apply(ctx, key, c)
}

// TestSearch_WordsCannotBeStored finds messages although their words cannot be stored, says so, and does not try again at once.
func TestSearch_WordsCannotBeStored(t *testing.T) {
	store := &unwritable{Store: memory.NewInProcess()}
	m := newMemory(t, memory.Config{}, store)
	sayMany(t, m, "s", "zanzibar")
	s := search.New(m)
	for range 2 {
		found, err := s.Search(t.Context(), search.Query{Text: "zanzibar", Scope: search.Session("s"), Limit: 1})
		testkit.Must(t, err)
		if len(found.Messages) != 1 || found.Messages[0].Seq != 51 || !strings.Contains(found.Problem, "no room") {
			t.Errorf("found %+v", found)
		}
		say(t, m, "s", "more")
	}
	if store.tried != 1 {
		t.Errorf("tried %d times", store.tried)
	}
}

// TestSearch_DeletionIsRewound finds a message again whose deletion was rewound, with and without stored words.
func TestSearch_DeletionIsRewound(t *testing.T) {
	m := newMemory(t, memory.Config{}, memory.NewInProcess())
	sayMany(t, m, "long", "zanzibar")
	say(t, m, "short", "a note about zanzibar")
	has := func(text string) bool { return strings.Contains(text, "zanzibar") }
	for session, position := range map[string]int64{"long": 51, "short": 1} {
		s, q := search.New(m), search.Query{Text: "zanzibar", Scope: search.Session(session)}
		for range 2 {
			testkit.Must(t, m.Delete(t.Context(), session, position))
			if found := find(t, s, q); slices.ContainsFunc(found, has) {
				t.Errorf("%s: found %q", session, found)
			}
			head, err := m.Head(t.Context(), session)
			testkit.Must(t, err)
			testkit.Must(t, m.Rewind(t.Context(), session, head.State.Turns))
			if found := find(t, s, q); !slices.ContainsFunc(found, has) {
				t.Errorf("%s, deletion rewound: found %q", session, found)
			}
		}
	}
}

// damage changes a byte in the middle of the second piece of the words of a session, which has columns.
func damage(t *testing.T, s memory.Store, session string) {
	for l, err := range s.Sessions(t.Context(), segments.StoredMemory("m")) {
		testkit.Must(t, err)
		if !strings.HasPrefix(l.Session, session+"\x00") || !strings.HasSuffix(l.Session, "000001") {
			continue
		}
		key := memory.Key{Memory: segments.StoredMemory("m"), Session: l.Session}
		head, err := s.Head(t.Context(), key)
		testkit.Must(t, err)
		testkit.Must(t, s.Apply(t.Context(), key, memstore.Change{Version: head.Version, Next: head.Version + 1, State: head.State,
			Values: map[string][]byte{"000000": head.Values["000000"][1:]}}))
		return
	}
	t.Fatal("there are no words to damage")
}

// readOnly is a store that refuses changes of stored words.
type readOnly struct{ memory.Store }

var errReadOnly = errors.New("read-only")

func (s readOnly) refuses(key memory.Key) bool { return key.Memory == segments.StoredMemory("m") }

func (s readOnly) Apply(ctx context.Context, key memory.Key, c memstore.Change) error {
	if s.refuses(key) {
		return errReadOnly
	}
	return s.Store.Apply(ctx, key, c)
}

func (s readOnly) Delete(ctx context.Context, key memory.Key) error {
	if s.refuses(key) {
		return errReadOnly
	}
	return s.Store.Delete(ctx, key)
}

// TestSearch_DamagedWords finds messages although stored words are damaged: these are deleted, not those of other sessions. If
// they cannot be deleted, all messages are read, and the search says so.
func TestSearch_DamagedWords(t *testing.T) {
	s := memory.NewInProcess()
	m := newMemory(t, memory.Config{}, s)
	sayMany(t, m, "u/a", "zanzibar")
	sayMany(t, m, "u/b", "timbuktu")
	q := search.Query{Text: "zanzibar", Scope: search.User("u"), Limit: 1}
	find(t, search.New(m), q)
	damage(t, s, "u/a")
	other := func() int64 {
		head, err := s.Head(t.Context(), memory.Key{Memory: segments.StoredMemory("m"), Session: "u/b\x00"})
		testkit.Must(t, err)
		return head.Version
	}
	before := other()
	found, err := search.New(newMemory(t, memory.Config{}, readOnly{s})).Search(t.Context(), q)
	testkit.Must(t, err)
	if len(found.Messages) != 1 || found.Messages[0].Seq != 51 || !strings.Contains(found.Problem, "read-only") {
		t.Errorf("found %+v", found)
	}
	found, err = search.New(m).Search(t.Context(), q)
	testkit.Must(t, err)
	if len(found.Messages) != 1 || found.Messages[0].Seq != 51 || found.Problem != "" {
		t.Errorf("found %+v", found)
	}
	if after := other(); before == 0 || after != before {
		t.Errorf("the words of another session have version %d, not %d", after, before)
	}
}

// TestSearch_DamagedList finds messages although the list of stored words promises other ones.
func TestSearch_DamagedList(t *testing.T) {
	s := memory.NewInProcess()
	m := newMemory(t, memory.Config{}, s)
	sayMany(t, m, "s", "zanzibar")
	q, key := search.Query{Text: "zanzibar", Scope: search.Session("s"), Limit: 1}, memory.Key{Memory: segments.StoredMemory("m"), Session: "s\x00"}
	for old, damaged := range map[string]string{`"docs":4`: `"docs":-4`, `"docs":40`: `"docs":40000000000`, `"from":1,`: `"from":-1,`, `{`: ``} {
		find(t, search.New(m), q)
		head, err := s.Head(t.Context(), key)
		testkit.Must(t, err)
		list := bytes.Replace(head.Values["words"], []byte(old), []byte(damaged), 1)
		if bytes.Equal(list, head.Values["words"]) {
			t.Fatalf("%s is not in %s", old, list)
		}
		testkit.Must(t, s.Apply(t.Context(), key, memstore.Change{Version: head.Version, Next: head.Version + 1, State: head.State, Values: map[string][]byte{"words": list}}))
		found, err := search.New(m).Search(t.Context(), q)
		if err != nil || len(found.Messages) != 1 || found.Messages[0].Seq != 51 {
			t.Errorf("%s: %v, found %+v", damaged, err, found)
		}
	}
}

// TestSearch_StaleWordsCannotBeDeleted finds messages although the stored words are of what the session was, and cannot be deleted.
func TestSearch_StaleWordsCannotBeDeleted(t *testing.T) {
	s := memory.NewInProcess()
	m := newMemory(t, memory.Config{}, s)
	sayMany(t, m, "s", "zanzibar")
	find(t, search.New(m), search.Query{Text: "zanzibar", Scope: search.Session("s")})
	key := memory.Key{Memory: "m", Session: "s"}
	testkit.Must(t, s.Delete(t.Context(), key))
	sayMany(t, m, "s", "timbuktu")
	found, err := search.New(newMemory(t, memory.Config{}, readOnly{s})).Search(t.Context(), search.Query{Text: "timbuktu", Scope: search.Session("s"), Limit: 1})
	testkit.Must(t, err)
	if len(found.Messages) != 1 || found.Messages[0].Seq != 51 || !strings.Contains(found.Problem, "read-only") {
		t.Errorf("found %+v", found)
	}
}

// late is a store that does something before a session of the memory is deleted.
type late struct {
	memory.Store
	before func()
}

func (s *late) Delete(ctx context.Context, key memory.Key) error {
	if before := s.before; before != nil && key.Memory == "m" {
		s.before = nil
		before()
	}
	return s.Store.Delete(ctx, key)
}

// TestStoreWords_SessionIsDeletedMeanwhile checks that words do not stay that another process stores while their session is deleted, nor
// those that it left when it died, after the session exists again.
func TestStoreWords_SessionIsDeletedMeanwhile(t *testing.T) {
	s := &late{Store: memory.NewInProcess()}
	now := time.Now()
	m := newMemory(t, memory.Config{TTL: time.Hour, Now: func() time.Time { return now }}, s)
	for name, remove := range map[string]func() error{
		"clear":  func() error { return m.Clear(t.Context(), "u/s") },
		"forget": func() error { _, err := m.ForgetUser(t.Context(), "u"); return err },
		"expire": func() error { now = now.Add(2 * time.Hour); _, err := m.Prune(t.Context()); return err },
		"expire and write": func() error {
			now = now.Add(2 * time.Hour)
			return m.Append(t.Context(), "u/s", chat.Text(chat.User, "anew"))
		},
	} {
		sayMany(t, m, "u/s", "zanzibar")
		s.before = func() { testkit.Must(t, m.StoreWords(t.Context(), "u/s")) }
		testkit.Must(t, remove())
		if left := storedWords(t, s); s.before != nil || len(left) > 0 {
			t.Errorf("%s: %d bytes are left", name, len(left))
		}
		testkit.Must(t, m.Clear(t.Context(), "u/s"))
	}
	sayMany(t, m, "u/s", "zanzibar")
	testkit.Must(t, m.StoreWords(t.Context(), "u/s"))
	testkit.Must(t, s.Store.Delete(t.Context(), memory.Key{Memory: "m", Session: "u/s"}))
	say(t, m, "u/s", "short")
	if _, err := m.Prune(t.Context()); err != nil || len(storedWords(t, s)) > 0 {
		t.Errorf("%v, %d bytes are left of a session that exists again", err, len(storedWords(t, s)))
	}
}

// TestSearch_EncryptedWords finds messages of an encrypted store although stored words were modified, or written without encryption; a
// process without the key does not delete them.
func TestSearch_EncryptedWords(t *testing.T) {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw)
	key, err := encrypted.ParseKey(base64.StdEncoding.EncodeToString(raw))
	testkit.Must(t, err)
	inner := memory.NewInProcess()
	sealed := func() *memory.Memory {
		return newMemory(t, memory.Config{}, encrypted.New(inner, "here", encrypted.Keys{Key: key}))
	}
	sayMany(t, sealed(), "s", "zanzibar")
	q, list := search.Query{Text: "zanzibar", Scope: search.Session("s"), Limit: 1}, memory.Key{Memory: segments.StoredMemory("m"), Session: "s\x00"}
	for name, change := range map[string]func(){
		"piece": func() { damage(t, inner, "s") },
		"list": func() {
			head, err := inner.Head(t.Context(), list)
			testkit.Must(t, err)
			testkit.Must(t, inner.Apply(t.Context(), list, memstore.Change{Version: head.Version, Next: head.Version + 1, State: head.State,
				Values: map[string][]byte{"words": []byte("{}")}}))
		},
		"no key": func() {
			before, _ := inner.Head(t.Context(), list)
			_, err := search.New(newMemory(t, memory.Config{}, inner)).Search(t.Context(), q)
			after, _ := inner.Head(t.Context(), list)
			if err == nil || before.Version == 0 || after.Version != before.Version {
				t.Errorf("without the key: %v, the list has version %d, not %d", err, after.Version, before.Version)
			}
		},
	} {
		find(t, search.New(sealed()), q)
		change()
		found, err := search.New(sealed()).Search(t.Context(), q)
		if err != nil || len(found.Messages) != 1 || found.Messages[0].Seq != 51 || found.Problem != "" {
			t.Errorf("%s: %v, found %+v", name, err, found)
		}
	}
}
