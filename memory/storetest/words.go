package storetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/ranking"
	"github.com/qtype-dev/qtype/internal/memory/segments"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// withPlainWindow returns a memory without context.
func withPlainWindow(s store.Store) (*memory.Memory, error) {
	return memory.New(memory.Config{ID: "m", Counter: runes{}}, s)
}

// storedWords checks that two memories that share the store, as two processes would, store the words of a long session once, that
// they are read, and that words of a message that is deleted do not stay in the store.
func storedWords(t *testing.T, s store.Store) {
	ctx, key := t.Context(), store.Key{Memory: "m", Session: "s"}
	m, err := withPlainWindow(s)
	testkit.Must(t, err)
	var all []chat.Message
	for i := range segments.MinMessages {
		all = append(all, chat.Text(chat.User, fmt.Sprintf("note%d of bread", i%97)))
	}
	all[30] = chat.Text(chat.User, "the zanzibar secret")
	testkit.Must(t, m.Append(ctx, "s", all...))
	inParallel(2, func(int) {
		other, err := withPlainWindow(s)
		if err == nil {
			err = other.StoreWords(ctx, "s")
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err := m.StoreWords(ctx, "s"); err != nil { // if both gave way to each other
		t.Fatal(err)
	}
	x := wordsOf(t, s, key)
	if x.To() != int64(len(all)) || x.Len() != 1 {
		t.Fatalf("words are stored up to %d in %d segments", x.To(), x.Len())
	}
	ids := map[string]bool{}
	for l, err := range s.Sessions(ctx, segments.StoredMemory("m")) {
		testkit.Must(t, err)
		if session, isList := strings.CutSuffix(l.Session, "\x00"); !isList {
			ids[session[:len(session)-6]] = true // without the number of the piece
		}
	}
	if len(ids) != 1 {
		t.Errorf("there are pieces of %d segments", len(ids))
	}
	testkit.Must(t, segments.Prune(ctx, s, "m", time.Now().Add(2*time.Hour)))
	if x = wordsOf(t, s, key); x.To() != int64(len(all)) {
		t.Fatal("pruning has deleted words that are used")
	}
	if got := positions(t, x, "zanzibar"); !slices.Equal(got, []int64{31}) {
		t.Errorf("found %v", got)
	}
	testkit.Must(t, m.Delete(ctx, "s", 31))
	if stored := storedValues(t, s); len(stored) > 0 {
		t.Errorf("after a message was deleted there are %d bytes of words", len(stored))
	}
	testkit.Must(t, m.StoreWords(ctx, "s"))
	if stored := storedValues(t, s); len(stored) == 0 || bytes.Contains(stored, []byte("zanzibar")) {
		t.Errorf("the words that are stored again, %d bytes, have a word that was deleted", len(stored))
	}
	testkit.Must(t, m.Clear(ctx, "s"))
	if stored := storedValues(t, s); len(stored) > 0 {
		t.Errorf("after the session was deleted there are %d bytes of words", len(stored))
	}
}

// wordsOf opens the stored words of a session.
func wordsOf(t *testing.T, s store.Store, key store.Key) *segments.Index {
	head, err := s.Head(t.Context(), key)
	testkit.Must(t, err)
	x, err := segments.Open(t.Context(), s, key, head)
	testkit.Must(t, err)
	return x
}

// positions returns the messages that a search of stored words finds.
func positions(t *testing.T, x *segments.Index, text string) (found []int64) {
	var c ranking.Corpus
	testkit.Must(t, x.AddTo(t.Context(), &c, 0, 1, x.To(), true))
	results, err := c.Rank(t.Context(), ranking.Query{Text: text, Limit: 1})
	testkit.Must(t, err)
	for _, r := range results {
		_, at := c.At(r.Doc)
		found = append(found, at.Seq)
	}
	return found
}

// storedValues returns all values of stored words.
func storedValues(t *testing.T, s store.Store) (all []byte) {
	var sessions []string
	for l, err := range s.Sessions(t.Context(), segments.StoredMemory("m")) {
		testkit.Must(t, err)
		sessions = append(sessions, l.Session)
	}
	for _, session := range sessions {
		head, err := s.Head(context.Background(), store.Key{Memory: segments.StoredMemory("m"), Session: session})
		testkit.Must(t, err)
		for _, value := range head.Values {
			all = append(all, value...)
		}
	}
	return all
}
