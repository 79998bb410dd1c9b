package redis_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/distribution/memory/redis"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// restartTorn kills a server, appends commands of a change to its file as if it had been killed while
// it wrote the next one, and starts it twice with a change in between: the second start makes these commands.
func restartTorn(t *testing.T, server *servertest.Server, s store.Store, commands [][]string, between func()) {
	t.Helper()
	testkit.Must(t, server.Kill())
	text := "*1\r\n$5\r\nMULTI\r\n"
	for _, c := range commands {
		text += fmt.Sprintf("*%d\r\n", len(c))
		for _, arg := range c {
			text += fmt.Sprintf("$%d\r\n%s\r\n", len(arg), arg)
		}
	}
	files, err := filepath.Glob(filepath.Join(server.Folder, "appendonlydir", "*.incr.aof"))
	testkit.Must(t, err)
	if len(files) != 1 {
		t.Fatalf("the server has the files %q", files)
	}
	f, err := os.OpenFile(files[0], os.O_APPEND|os.O_WRONLY, 0)
	testkit.Must(t, err)
	_, err = f.WriteString(text + "*4\r\n$4\r\nHSET\r\n$9\r\nhalf")
	testkit.Must(t, err)
	testkit.Must(t, f.Close())
	testkit.Must(t, server.Restart())
	between()
	testkit.Must(t, server.Kill())
	testkit.Must(t, server.Restart())
	_, err = s.Head(t.Context(), key) // connects again
	testkit.Must(t, err)
}

// appended returns a change that adds a message at a position.
func appended(seq int64, id string) store.Change {
	c := store.Change{Version: seq, Next: seq + 1, State: store.State{Last: seq}}
	c.Entries = []*store.Entry{{Seq: seq, Message: chat.Message{ID: id, Role: chat.User, Blocks: chat.Text(chat.User, id).Blocks}}}
	if seq == 1 {
		c.Version = 0
	}
	return c
}

// TestStore_TornChange checks that messages of a change that was cut off, which the server makes later, are not
// part of the session: it has the messages that were acknowledged, once and in order.
func TestStore_TornChange(t *testing.T) {
	list, ids := "qtype:{"+tag+"}:messages", "qtype:{"+tag+"}:ids"
	torn := func(seq int, id string) [][]string {
		return [][]string{
			{"RPUSH", list, fmt.Sprintf(`%d 1 1 1 0 {"id":"%s","role":"user","blocks":[{"type":"text","content":"%s"}]}`, seq, id, id)},
			{"HSET", ids, id, fmt.Sprint(seq)},
		}
	}
	for name, test := range map[string]struct {
		commands [][]string
		later    []string // the messages added between the two starts
		warning  string
	}{
		"another message has the position": {torn(4, "torn"), []string{"d", "e"}, "1 of them"},
		"the same message":                 {torn(4, "d"), []string{"d", "e"}, "1 of them"},
		"two messages":                     {slices.Concat(torn(4, "torn"), torn(5, "torn2")), []string{"d", "e", "f"}, "2 of them"},
		"after the last one":               {slices.Concat(torn(4, "torn"), torn(5, "torn2")), nil, "2 of them"},
	} {
		for _, use := range []string{"read", "write", "replace", "look up"} {
			t.Run(name+"/"+use, func(t *testing.T) {
				t.Parallel()
				server := startServer(t, "--appendfsync", "always")
				var warned []string
				s := open(t, "redis://"+server.Address(), redis.Warn(func(text string) { warned = append(warned, text) }))
				defer func() { testkit.Must(t, s.Close()) }()
				other := store.Key{Memory: "m", Session: "other"}
				want := []string{"a", "b", "c"}
				for i, id := range want {
					testkit.Must(t, s.Apply(t.Context(), key, appended(int64(i+1), id)))
				}
				restartTorn(t, server, s, test.commands, func() {
					testkit.Must(t, s.Apply(t.Context(), other, appended(1, "x"))) // merges with the torn change
					for _, id := range test.later {
						testkit.Must(t, s.Apply(t.Context(), key, appended(int64(len(want)+1), id)))
						want = append(want, id)
					}
				})
				next := int64(len(want) + 1)
				switch use {
				case "write":
					testkit.Must(t, s.Apply(t.Context(), key, appended(next, "last")))
					want = append(want, "last")
				case "replace":
					testkit.Must(t, s.Replace(t.Context(), key, store.Replacement{Version: next, Next: next + 1, Messages: map[int64]chat.Message{3: appended(3, "c").Entries[0].Message}}))
				case "look up":
					for e, err := range s.Entries(t.Context(), key, store.Query{IDs: want[len(want)-1:], Live: true}) {
						testkit.Must(t, err)
						if e.Seq != next-1 {
							t.Errorf("%s is at %d, want %d", e.Message.ID, e.Seq, next-1)
						}
					}
				}
				var got []string
				for e, err := range s.Entries(t.Context(), key, store.Query{From: 1, To: int64(len(want))}) {
					testkit.Must(t, err)
					if got = append(got, e.Message.ID); e.Seq != int64(len(got)) {
						t.Errorf("%s is at %d, want %d", e.Message.ID, e.Seq, len(got))
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
				if _, err := s.Head(t.Context(), other); err != nil {
					t.Error(err)
				}
				if text := strings.Join(warned, "\n"); (len(test.later) > 0 || use == "write") && (!strings.Contains(text, test.warning) || strings.Contains(text, "append-only file")) {
					t.Errorf("the warnings are %q", text)
				}
				if len(test.later) == 0 && use == "write" { // an id of a message that was removed can be used
					testkit.Must(t, s.Apply(t.Context(), key, appended(int64(len(want)+1), "torn2")))
				}
			})
		}
	}
}
