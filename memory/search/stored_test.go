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
