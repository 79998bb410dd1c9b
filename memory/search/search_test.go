package search_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/search"
	"github.com/qtype-dev/qtype/spec/chat"
)

// tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
}

func newMemory(t tester, cfg memory.Config, store memory.Store) *memory.Memory {
	t.Helper()
	cfg.ID, cfg.Counter = "m", words{}
	m, err := memory.New(cfg, store)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func find(t tester, s *search.Searcher, q search.Query) (contents []string) {
	found, err := s.Search(context.Background(), q)
	testkit.Must(t, err)
	for _, m := range found.Messages {
		contents = append(contents, m.Session+": "+m.Content)
	}
	return contents
}

func say(t tester, m *memory.Memory, session string, texts ...string) {
	for _, text := range texts {
		testkit.Must(t, m.Append(context.Background(), session, chat.Text(chat.User, text)))
	}
}

func TestSearch_Stores(t *testing.T) {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	parsed, err := encrypted.ParseKey(base64.StdEncoding.EncodeToString(key))
	testkit.Must(t, err)
	inFile := func() memory.Store {
		s, err := sqlite.Open(filepath.Join(t.TempDir(), "m.db"))
		testkit.Must(t, err)
		return s
	}
	for name, store := range map[string]memory.Store{"in process": memory.NewInProcess(), "sqlite": inFile(), "encrypted": encrypted.New(inFile(), "here", encrypted.Keys{Key: parsed})} {
		t.Run(name, func(t *testing.T) {
			defer store.Close()
			m := newMemory(t, memory.Config{}, store)
			s := search.New(m)
			say(t, m, "ada/1", "I baked sourdough", "it rained")
			say(t, m, "ada/2", "the dog ate the bread")
			say(t, m, "bob/1", "sourdough is overrated")
			for _, test := range []struct {
				scope search.Scope
				text  string
				want  []string
			}{
				{search.Session("ada/1"), "baking sourdough", []string{"ada/1: I baked sourdough", "ada/1: it rained"}},
				{search.User("ada"), "sourdough", []string{"ada/1: I baked sourdough", "ada/1: it rained"}},
				{search.User("ad"), "sourdough", nil},
				{search.User("ada"), "dogs", []string{"ada/2: the dog ate the bread"}},
				{search.Session("none"), "dogs", nil},
				{search.All(), `"AND NEAR(* 🎉`, nil},
				{search.All(), "", nil},
			} {
				if got := find(t, s, search.Query{Text: test.text, Scope: test.scope}); !slices.Equal(got, test.want) {
					t.Errorf("%v %q: %q, want %q", test.scope, test.text, got, test.want)
				}
			}
			if got := find(t, s, search.Query{Text: "sourdough", Scope: search.All(), Limit: 2}); len(got) != 2 {
				t.Errorf("found %q", got)
			}
			testkit.Must(t, m.Clear(t.Context(), "ada/1"))
			if got := find(t, s, search.Query{Text: "sourdough", Scope: search.All()}); !slices.Equal(got, []string{"bob/1: sourdough is overrated"}) {
				t.Errorf("after clear: %q", got)
			}
			say(t, m, "ada/1", "no bread any more")
			if got := find(t, s, search.Query{Text: "sourdough", Scope: search.Session("ada/1")}); got != nil {
				t.Errorf("a new session with an old id: %q", got)
			}
		})
	}
}

func TestSearch_FailedRewoundExpiredAndSystemMessages(t *testing.T) {
	now := time.Now()
	m := newMemory(t, memory.Config{TTL: time.Hour, Now: func() time.Time { return now }}, memory.NewInProcess())
	s := search.New(m)
	all := search.Query{Text: "tango", Scope: search.All()}
	say(t, m, "s", "tango one")
	turn, err := m.Begin(t.Context(), "s")
	testkit.Must(t, err)
	turn.System("tango system")
	testkit.Must(t, turn.Add(chat.Text(chat.User, "tango failed")))
	testkit.Must(t, turn.Abort(t.Context(), errors.New("it broke")))
	say(t, m, "s", "tango two")
	if got := find(t, s, all); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"s: tango one", "s: tango two"}) {
		t.Errorf("found %q", got)
	}
	info, err := m.Info(t.Context(), "s")
	testkit.Must(t, err)
	testkit.Must(t, m.Rewind(t.Context(), "s", info.Turns))
	if got := find(t, s, all); !slices.Equal(got, []string{"s: tango one"}) {
		t.Errorf("after rewind: %q", got)
	}
	now = now.Add(2 * time.Hour)
	if got := find(t, s, all); got != nil {
		t.Errorf("expired: %q", got)
	}
}

func TestSearch_Times(t *testing.T) {
	now := time.Date(2024, time.May, 1, 12, 0, 0, 0, time.UTC)
	m := newMemory(t, memory.Config{Now: func() time.Time { return now }}, memory.NewInProcess())
	for day := range 4 {
		say(t, m, "s", fmt.Sprint("tango ", day))
		now = now.AddDate(0, 0, 1)
	}
	q := search.Query{Text: "tango", Scope: search.Session("s"), Since: time.Date(2024, time.May, 2, 0, 0, 0, 0, time.UTC), Until: time.Date(2024, time.May, 4, 0, 0, 0, 0, time.UTC)}
	if got := find(t, search.New(m), q); !slices.Equal(got, []string{"s: tango 1", "s: tango 2"}) {
		t.Errorf("found %q", got)
	}
}

func TestSearch_MinScore(t *testing.T) {
	m := newMemory(t, memory.Config{}, memory.NewInProcess())
	say(t, m, "s", "the parcel was stolen", "a parcel came", "good morning")
	q := search.Query{Text: "stolen parcel", Scope: search.Session("s")}
	all, err := search.New(m).Search(context.Background(), q)
	testkit.Must(t, err)
	for i, found := range all.Messages {
		q.MinScore = found.Score
		if got := find(t, search.New(m), q); len(got) != i+1 {
			t.Errorf("at least %v: found %q", q.MinScore, got)
		}
	}
	if len(all.Messages) < 2 {
		t.Errorf("found %v", all)
	}
}

func TestSearch_Invalid(t *testing.T) {
	s := search.New(newMemory(t, memory.Config{}, memory.NewInProcess()))
	for _, q := range []search.Query{{Text: "a"}, {Text: "a", Scope: search.User("")}, {Text: "a", Scope: search.Session("")}, {Text: "a", Scope: search.All(), Limit: -1}, {Text: "a", Scope: search.All(), Limit: 1001}} {
		if _, err := s.Search(t.Context(), q); err == nil {
			t.Errorf("%+v is accepted", q)
		}
	}
}

func TestSearcher_ScopeOf(t *testing.T) {
	s := search.New(newMemory(t, memory.Config{}, memory.NewInProcess()))
	shared := search.New(newMemory(t, memory.Config{Scope: memory.UserScope}, memory.NewInProcess()))
	for _, test := range []struct{ got, want search.Scope }{
		{s.ScopeOf(memory.UserScope, "ada/1"), search.User("ada")},
		{s.ScopeOf(memory.UserScope, "1"), search.Session("1")},
		{s.ScopeOf(memory.SessionScope, "ada/1"), search.Session("ada/1")},
		{s.ScopeOf("", "ada/1"), search.Session("ada/1")},
		{s.ScopeOf(memory.AppScope, "ada/1"), search.All()},
		{shared.ScopeOf(memory.UserScope, "ada/1"), search.Session("ada/1")},
	} {
		if test.got != test.want {
			t.Errorf("%v, want %v", test.got, test.want)
		}
	}
}

// embedder gives texts about animals another direction than others.
type embedder struct{ fails error }

func (*embedder) Name() (string, error) { return "animals", nil }

func (e *embedder) Embed(_ context.Context, texts []string, _ bool) ([][]float32, error) {
	var out [][]float32
	for _, t := range texts {
		v := []float32{0, 1}
		if strings.Contains(t, "cat") || strings.Contains(t, "dog") {
			v = []float32{1, 0}
		}
		out = append(out, v)
	}
	return out, e.fails
}

func TestSearch_Meaning(t *testing.T) {
	model := &embedder{}
	m := newMemory(t, memory.Config{Context: promptcontext.New(nil, promptcontext.Block{Kind: promptcontext.Retrieval, Priority: 1, Embedder: model})}, memory.NewInProcess())
	say(t, m, "s", "our cat sleeps", "it rains")
	s := search.New(m)
	q := search.Query{Text: "dogs", Scope: search.Session("s"), Limit: 1}
	if got := find(t, s, q); !slices.Equal(got, []string{"s: our cat sleeps"}) {
		t.Errorf("found %q", got)
	}
	model.fails = errors.New("down")
	q.Text = "rain"
	found, err := s.Search(t.Context(), q)
	testkit.Must(t, err)
	if len(found.Messages) != 1 || found.Messages[0].Content != "it rains" || !strings.Contains(found.Problem, "down") {
		t.Errorf("found %+v", found)
	}
}

// TestSearch_EqualsAFreshIndex checks after random changes that a search returns what a
// new Searcher returns, and only messages of its scope that the history has.
func TestSearch_EqualsAFreshIndex(t *testing.T) {
	sessions := []string{"ada/1", "ada/2", "bob/1", "ada%2Fx/1", "adam/1"}
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		m := newMemory(t, memory.Config{Policy: "message_window", Limits: memory.Limits{"max_messages": 3}}, memory.NewInProcess())
		s := search.New(m)
		for range rapid.IntRange(1, 15).Draw(t, "operations") {
			session := rapid.SampledFrom(sessions).Draw(t, "session")
			switch rapid.SampledFrom([]string{"say", "say", "say", "clear", "rewind", "fork"}).Draw(t, "operation") {
			case "say":
				say(t, m, session, strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"bread", "dogs", "rain", "tea"}), 1, 3).Draw(t, "words"), " "))
			case "clear":
				testkit.Must(t, m.Clear(ctx, session))
			case "rewind":
				if info, err := m.Info(ctx, session); err == nil && info.Turns > 0 {
					testkit.Must(t, m.Rewind(ctx, session, int64(rapid.IntRange(1, int(info.Turns)).Draw(t, "turn"))))
				}
			case "fork":
				_ = m.Fork(ctx, session, rapid.SampledFrom(sessions).Draw(t, "to"), 0) // it may exist
			}
			for scope, prefix := range map[search.Scope]string{search.User("ada"): "ada/", search.User("ada/x"): "ada%2Fx/", search.Session("bob/1"): "bob/1", search.All(): ""} {
				q := search.Query{Text: "bread dog", Scope: scope, Limit: 50}
				got, want := find(t, s, q), find(t, search.New(m), q)
				slices.Sort(got) // equal scores are in the order in which the sessions were read
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Fatalf("%v: %q, a new one finds %q", scope, got, want)
				}
				for _, text := range got {
					if !strings.HasPrefix(text, prefix) {
						t.Fatalf("%v found %q", scope, text)
					}
				}
			}
		}
	})
}
