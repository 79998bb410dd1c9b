package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/memory/ranking"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/vectors"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/transcript"
)

// pages checks that pages of sessions, by any prefix, are together the sessions
// with this prefix, in order.
func pages(t *testing.T, s store.Store) {
	ids := []string{"", "a", "a/", "a/1", "a/1\x00", "a/1\x00b", "a/2", "a0", "ab", "b/1", "ä/1", strings.Repeat("l", 300) + "1", strings.Repeat("l", 300) + "2"}
	for i := range 60 {
		ids = append(ids, fmt.Sprintf("c/%02d", i))
	}
	for _, id := range ids {
		testkit.Must(t, s.Apply(t.Context(), store.Key{Memory: "m", Session: id}, add(store.Head{}, "x")))
		testkit.Must(t, s.Apply(t.Context(), store.Key{Memory: "n", Session: id + "-"}, add(store.Head{}, "x")))
	}
	testkit.Must(t, s.Delete(t.Context(), store.Key{Memory: "m", Session: "c/07"}))
	slices.Sort(ids)
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "c/07" })
	for _, prefix := range []string{"", "a/", "a/1", "c/", "c/5", strings.Repeat("l", 300), "z", "\xff"} {
		var want []string
		for _, id := range ids {
			if strings.HasPrefix(id, prefix) {
				want = append(want, id)
			}
		}
		for _, limit := range []int{0, 1, 7} {
			var got []string
			for q := (store.SessionQuery{Prefix: prefix, Limit: limit}); ; {
				page, err := store.ListSessions(t.Context(), s, "m", q)
				testkit.Must(t, err)
				if limit > 0 && len(page) > limit {
					t.Fatalf("a page of %d sessions, the limit is %d", len(page), limit)
				}
				for _, l := range page {
					got = append(got, l.Session)
					if l.Head.Version == 0 || l.Head.State.Last != 1 {
						t.Errorf("%q: head %+v", l.Session, l.Head)
					}
				}
				if limit == 0 || len(page) < limit {
					break
				}
				if q.After = page[len(page)-1].Session; q.After == "" {
					q.After = "\x00" // an id that is empty cannot be a cursor
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("prefix %.10q, pages of %d: %s", prefix, limit, d)
			}
		}
	}
}

// branches checks rewinding, forking and moving a session with context: what was
// rewound is not in the summary and not retrieved, a fork is the session as it was
// after a turn, and an imported one is equal to the exported one.
func branches(t *testing.T, s store.Store) {
	m, err := withContext(s)
	testkit.Must(t, err)
	words := func(session string) []string {
		text, err := promptcontext.SummaryOf(t.Context(), m, session)
		testkit.Must(t, err)
		return strings.Fields(text)
	}
	window := func(session string) (ids []string) {
		w, err := m.Window(t.Context(), session)
		testkit.Must(t, err)
		for _, e := range w.Entries {
			ids = append(ids, e.Message.Text())
		}
		return ids
	}
	var before []string
	for n := range 20 {
		testkit.Must(t, runTurn(t.Context(), m, "s", fmt.Sprintf("old-%d%s", n+1, strings.Repeat("x", 20))))
		if n == 8 {
			before = window("s")
		}
	}
	if !slices.ContainsFunc(words("s"), func(w string) bool { return strings.HasPrefix(w, "old-11x") }) {
		t.Fatalf("the summary is %q: the messages are too short for this test", words("s"))
	}
	testkit.Must(t, m.Rewind(t.Context(), "s", 10))
	if d := cmp.Diff(before, window("s")); d != "" {
		t.Errorf("the window after rewinding: %s", d)
	}
	if got := words("s"); len(got) != 0 {
		t.Errorf("the summary of messages that were rewound is still there: %q", got)
	}
	for n := range 20 {
		testkit.Must(t, runTurn(t.Context(), m, "s", fmt.Sprintf("new-%d%s", n, strings.Repeat("x", 20))))
	}
	for _, w := range words("s") {
		if number := 0; strings.HasPrefix(w, "old-") {
			if _, err := fmt.Sscanf(w, "old-%dx", &number); err != nil || number >= 10 {
				t.Errorf("the summary has %q", w)
			}
		}
	}
	testkit.Must(t, m.Fork(t.Context(), "s", "fork", 9))
	if d := cmp.Diff(before, window("fork")); d != "" {
		t.Errorf("the window of the fork: %s", d)
	}
	forkedEntries(t, s)
	testkit.Must(t, runTurn(t.Context(), m, "fork", "after-the-fork"))
	revisions(t, s, m, words, window)
	imported(t, m)
	if d := cmp.Diff(window("s"), window("moved")); d != "" {
		t.Errorf("the imported window: %s", d)
	}
}

// forkedEntries checks that session fork has the first nine entries of session s and their events.
func forkedEntries(t *testing.T, s store.Store) {
	t.Helper()
	source, fork := dump(t, s, store.Key{Memory: "m", Session: "s"}), dump(t, s, store.Key{Memory: "m", Session: "fork"})
	if d := cmp.Diff(source.Entries[:9], fork.Entries); d != "" {
		t.Errorf("the entries of the fork: %s", d)
	}
	if n := len(fork.Events); n == 0 || n >= len(source.Events) || fork.Events[n-1].Turn > 9 {
		t.Errorf("the fork has %d of %d events", n, len(source.Events))
	}
}

// imported exports session s, imports it as session moved, and checks that the export of both is the same.
func imported(t *testing.T, m *memory.Memory) {
	t.Helper()
	var lines, again bytes.Buffer
	testkit.Must(t, transcript.Export(t.Context(), m, "s", &lines))
	testkit.Must(t, transcript.Import(t.Context(), m, "moved", bytes.NewReader(lines.Bytes())))
	testkit.Must(t, transcript.Export(t.Context(), m, "moved", &again))
	if d := cmp.Diff(lines.String(), again.String()); d != "" {
		t.Errorf("exported again: %s", d)
	}
}

// revisions checks editing and deleting messages that left the window: neither their
// former texts nor deleted messages are summarized or retrieved, the new texts are.
func revisions(t *testing.T, s store.Store, m *memory.Memory, words, window func(string) []string) {
	before := window("s")
	edited, err := m.Find(t.Context(), "s", "2")
	testkit.Must(t, err)
	deleted, err := m.Find(t.Context(), "s", "3")
	testkit.Must(t, err)
	text := edited.Message.WithText("edited-2" + strings.Repeat("x", 20))
	testkit.Must(t, m.Edit(t.Context(), "s", edited.Seq, text))
	testkit.Must(t, m.Delete(t.Context(), "s", deleted.Seq))
	if got := words("s"); len(got) != 0 {
		t.Errorf("the summary of messages that were edited is still there: %q", got)
	}
	if d := cmp.Diff(before, window("s")); d != "" {
		t.Errorf("the window after revising evicted messages: %s", d)
	}
	testkit.Must(t, runTurn(t.Context(), m, "s", "after-edit"))
	summary := strings.Join(words("s"), " ")
	for _, old := range []store.Entry{edited, deleted} {
		if strings.Contains(summary, old.Message.Text()) {
			t.Errorf("the summary has %q", old.Message.Text())
		}
	}
	if !strings.Contains(summary, text.Text()) {
		t.Errorf("the summary is %q, without %q", summary, text.Text())
	}
	head, err := m.Head(t.Context(), "s")
	testkit.Must(t, err)
	if current := head.State.Edits().Current(2); !hasVector(t, s, current) {
		t.Errorf("the text at position %d was not embedded", current)
	}
	var found []string
	for e, err := range m.Messages(t.Context(), "s") {
		testkit.Must(t, err)
		if e.Message.ID == edited.Message.ID || e.Message.ID == deleted.Message.ID {
			found = append(found, fmt.Sprint(e.Seq, e.Message.Text()))
		}
	}
	if d := cmp.Diff([]string{"2" + text.Text()}, found); d != "" {
		t.Errorf("the conversation: %s", d)
	}
	statuses := map[int64]store.Status{}
	for e, err := range m.History(t.Context(), "s") {
		testkit.Must(t, err)
		statuses[e.Seq] = e.Status
	}
	if statuses[2] != store.Edited || statuses[3] != store.Deleted {
		t.Errorf("the statuses are %s and %s", statuses[2], statuses[3])
	}
	if again, err := m.Find(t.Context(), "s", edited.Message.ID); err != nil || again.Message.Text() != text.Text() {
		t.Errorf("found %+v, %v", again, err)
	}
}

// hasVector reports whether the session s has a vector for a position.
func hasVector(t *testing.T, s store.Store, position int64) bool {
	for _, e := range entries(t, s, store.Key{Memory: "m\x00vectors", Session: "s"}, store.Query{}) {
		for _, b := range e.Message.Blocks {
			var v vectors.Vectors
			testkit.Must(t, v.AddBinary(b.Data))
			if len(v.Nearest([]float32{1, 1}, 1, func(id int64) bool { return ranking.PlaceOf(id).Seq == position })) > 0 {
				return true
			}
		}
	}
	return false
}
