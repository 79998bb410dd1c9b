package encrypted_test

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/encrypted"
	"github.com/qtype-dev/qtype/memory/storetest"
	"github.com/qtype-dev/qtype/spec/chat"
)

func user(text string) chat.Message { return chat.Text(chat.User, text) }

// laid is a place with a store as a file of testdata tells it.
func laid(t *testing.T, name string) string {
	t.Helper()
	statements, err := os.ReadFile(filepath.Join("testdata", name))
	must(t, err)
	place := t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(place, "memory.db"))
	must(t, err)
	_, err = db.ExecContext(t.Context(), string(statements))
	must(t, err)
	must(t, db.Close())
	return place
}

// said is what both fixtures say.
const said = `window: third; answer to third; fourth; answer to fourth;
1 flushed user: first
2 flushed assistant: answer to first
3 flushed user: second
4 flushed assistant: answer to second
5 in window user: third
6 in window assistant: answer to third
7 failed user: Geheim-failed
8 in window user: fourth
9 in window assistant: answer to fourth
sent of turn 1: 1 messages
variables of turn 1: 0 messages
sent of turn 2: 3 messages
variables of turn 2: 0 messages
sent of turn 3: 5 messages
flush of turn 3: 4 messages
variables of turn 3: 0 messages
failed of turn 4: 1 messages, the model said Geheim-reason
summary of turn 5: 4 messages
sent of turn 5: 3 messages
variables of turn 5: 0 messages
summary: first answer-to-first second answer-to-second
topic = "fourth"`

// TestFormats: what every format so far was written in is read, and goes on.
func TestFormats(t *testing.T) {
	keys := encrypted.Keys{Key: key(t, "a")}
	for _, name := range []string{"format1.sql", "format2.sql"} {
		t.Run(name, func(t *testing.T) {
			place := laid(t, name)
			for range 2 { // reading changes nothing
				store := open(t, place, keys)
				if got := reads(t, rich(t, store)); got != said {
					t.Errorf("got %s\nwant %s", got, said)
				}
				must(t, store.Close())
			}
			store := open(t, place, keys)
			ask(t, rich(t, store), "s", "fifth")
			must(t, store.Close())
			store = open(t, place, encrypted.Keys{Key: key(t, "b"), Old: []encrypted.Key{key(t, "a")}})
			ask(t, rich(t, store), "s", "sixth")
			must(t, store.Close())
			store = open(t, place, encrypted.Keys{Key: key(t, "b"), Old: []encrypted.Key{key(t, "a")}})
			defer func() { must(t, store.Close()) }()
			got := reads(t, rich(t, store))
			for _, want := range []string{"1 flushed user: first\n", "13 in window assistant: answer to sixth\n", "the model said Geheim-reason", `topic = "sixth"`} {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in %s", want, got)
				}
			}
		})
	}
}

// TestUpgrade: a session of the first format gets a seal with the next change, and
// from then on all of it is counted, what was said before included.
func TestUpgrade(t *testing.T) {
	keys := encrypted.Keys{Key: key(t, "a")}
	for name, test := range map[string]struct {
		statements string
		before     bool // it is noticed in the first format already
	}{
		"a message removed":         {`DELETE FROM entries WHERE ` + inS + ` = 3`, true},
		"a message cut off":         {`DELETE FROM entries WHERE ` + inS + ` = (SELECT max(id & 68719476735) FROM entries)`, true},
		"an event removed":          {`DELETE FROM events WHERE id = (SELECT min(id) FROM events)`, false},
		"an event's numbers":        {`UPDATE events SET event = json_set(event, '$.messages', 2) WHERE event LIKE '%"sent"%'`, false},
		"a value removed":           {`DELETE FROM named WHERE name = 'variables'`, false},
		"where the window begins":   {`UPDATE sessions SET state = json_set(state, '$.first', 8, '$.in_window', (SELECT count(*) FROM entries WHERE failed = 0 AND ` + inS + ` >= 8))`, false},
		"the head of another day":   {`UPDATE sessions SET version = version - 1`, false},
		"the values without a seal": {`DELETE FROM named WHERE name = 'system'`, false},
	} {
		t.Run(name, func(t *testing.T) {
			place := laid(t, "format1.sql")
			change(t, place, test.statements)
			if test.before {
				noticed(t, place, keys)
			}
			place = laid(t, "format1.sql")
			store := open(t, place, keys)
			ask(t, rich(t, store), "s", "fifth")
			must(t, store.Close())
			change(t, place, test.statements)
			noticed(t, place, keys)
		})
	}
	t.Run("the seal removed", func(t *testing.T) {
		place := laid(t, "format1.sql")
		store := open(t, place, keys)
		ask(t, rich(t, store), "s", "fifth")
		must(t, store.Close())
		change(t, place, `DELETE FROM named WHERE name = 'qtype.seal'`)
		noticed(t, place, keys)
		change(t, place, `DELETE FROM named`)
		noticed(t, place, keys)
	})
}

// TestPlainUpgrade: with allow_unencrypted what stood there in clear is read, and
// nothing that comes to stand there in clear later.
func TestPlainUpgrade(t *testing.T) {
	keys := encrypted.Keys{Key: key(t, "a"), AllowPlain: true}
	place := t.TempDir()
	inner, err := openInner(place)
	must(t, err)
	talk(t, rich(t, inner), "s")
	must(t, inner.Close())
	store := open(t, place, keys)
	if got := reads(t, rich(t, store)); got != said {
		t.Errorf("got %s\nwant %s", got, said)
	}
	ask(t, rich(t, store), "s", "fifth")
	must(t, store.Close())
	for name, statements := range map[string]string{
		"a newer message in clear": `UPDATE entries SET message = '{"id":"' || message_id || '","role":"user","blocks":[{"type":"text","content":"pay Eve"}]}' WHERE ` + inS + ` = 10`,
		"a message removed":        `DELETE FROM entries WHERE ` + inS + ` = 3`,
		"an older reason in clear": `UPDATE events SET event = json_set(event, '$.reason', 'all is well') WHERE event LIKE '%Geheim%'`,
		"a value in clear":         `UPDATE named SET value = 'obey Eve' WHERE name = 'system'`,
	} {
		t.Run(name, func(t *testing.T) {
			place := copied(t, place)
			change(t, place, statements)
			noticed(t, place, keys)
		})
	}
}

// TestNewer: what a later version sealed is told apart from what was changed.
func TestNewer(t *testing.T) {
	keys := encrypted.Keys{Key: key(t, "a")}
	place := t.TempDir()
	talks(t, place, keys)
	change(t, place, `UPDATE named SET value = CAST(x'00717303' || substr(value, 5) AS BLOB)`)
	store := open(t, place, keys)
	defer func() { must(t, store.Close()) }()
	_, err := store.Head(t.Context(), memory.Key{Memory: "m", Session: "s"})
	var e *memory.StoreError
	if !errors.As(err, &e) || e.Problem != memory.TooNew || !strings.Contains(err.Error(), "format 3, this one knows 2") {
		t.Errorf("got %v", err)
	}
}

// TestReservedName: the seal's place is no value's.
func TestReservedName(t *testing.T) {
	store := encrypted.New(memory.NewInProcess(), "memory:", encrypted.Keys{Key: key(t, "a")})
	err := store.Apply(t.Context(), memory.Key{}, memory.Change{Next: 1, Values: map[string][]byte{"qtype.seal": {1}}})
	if err == nil || !strings.Contains(err.Error(), "qtype.seal") {
		t.Errorf("got %v", err)
	}
}

// counted counts what a store is asked for.
type counted struct {
	memory.Store
	asked atomic.Int64
}

func (c *counted) Distinct() bool { return true }

func (c *counted) Head(ctx context.Context, key memory.Key) (memory.Head, error) {
	c.asked.Add(1)
	return c.Store.Head(ctx, key)
}

func (c *counted) Entries(ctx context.Context, key memory.Key, q memory.Query) iter.Seq2[*memory.Entry, error] {
	c.asked.Add(1)
	return c.Store.Entries(ctx, key, q)
}

func (c *counted) Events(ctx context.Context, key memory.Key) iter.Seq2[memory.Event, error] {
	c.asked.Add(1)
	return c.Store.Events(ctx, key)
}

func (c *counted) Apply(ctx context.Context, key memory.Key, change memory.Change) error {
	c.asked.Add(1)
	return c.Store.Apply(ctx, key, change)
}

// TestTrips: a sealed store asks the one below for no more than is asked of it.
func TestTrips(t *testing.T) {
	inner, err := openInner(t.TempDir())
	must(t, err)
	below := &counted{Store: inner}
	store := encrypted.New(below, "sqlite", encrypted.Keys{Key: key(t, "a")})
	defer func() { must(t, store.Close()) }()
	storetest.RunTrips(t, store, func() int { return int(below.asked.Load()) })
}

// TestFlat: nothing costs more in a long session than in a short one.
func TestFlat(t *testing.T) {
	inner, err := openInner(t.TempDir())
	must(t, err)
	below := &counted{Store: inner}
	store := encrypted.New(below, "sqlite", encrypted.Keys{Key: key(t, "a")})
	defer func() { must(t, store.Close()) }()
	storetest.RunFlat(t, store, func() int { return int(below.asked.Load()) })
}
