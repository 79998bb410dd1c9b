package promptcontext_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// say runs a turn of a session with a question and an answer, and returns what the model received as one text.
func say(t fataler, m *memory.Memory, session, text, answer string) string {
	var sent []chat.Message
	err := m.Turn(context.Background(), session, func(turn *memory.Turn) (err error) {
		if err = turn.Add(chat.Text(chat.User, text)); err != nil {
			return err
		}
		if sent, err = turn.Window(); err != nil {
			return err
		}
		return turn.Add(chat.Text(chat.Assistant, answer))
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(textsOf(sent), "\n")
}

// TestScope_Context checks that a session begins with what earlier sessions of the same
// user had, and only of the same user.
func TestScope_Context(t *testing.T) {
	m := contextual(t, memory.NewInProcess(), 4000,
		promptcontext.Block{Kind: promptcontext.Summary, Scope: memory.UserScope, Priority: 2, Summarizer: textSummarizer{}},
		promptcontext.Block{Kind: promptcontext.Retrieval, Scope: memory.UserScope, Priority: 3, TopK: 1, Embedder: &letterEmbedder{}},
		promptcontext.Block{Kind: promptcontext.Variables, Scope: memory.UserScope, Priority: 1})
	testkit.Must(t, m.SetVariables(t.Context(), memory.UserSession("ada", ""), memory.Variable{Name: "plan", Value: []byte(`"Gold"`)}))
	say(t, m, "ada/s1", "My bicycle is a Raleigh.", "A fine one.")
	say(t, m, "ada/s1", "I like tea.", "So do I.")
	say(t, m, "bob/s1", "My cat is Tom.", "Hello Tom.")
	say(t, m, "s1", "I have no name.", "Hello.")

	sent := say(t, m, "ada/s2", "What bicycle is it, a Raleigh?", "A Raleigh.")
	for _, want := range []string{"Summary of earlier conversations with the user", "user: I like tea.", "- plan: Gold", "that may be relevant", "My bicycle is a Raleigh."} {
		if !strings.Contains(sent, want) {
			t.Errorf("the first call of a session lacks %q:\n%s", want, sent)
		}
	}
	if strings.Contains(sent, "Tom") || strings.Contains(sent, "no name") {
		t.Errorf("a session has messages of another user:\n%s", sent)
	}
	if sent := say(t, m, "eve/s1", "Who are you?", "A model."); strings.Contains(sent, "Gold") || strings.Contains(sent, "Summary") {
		t.Errorf("the session of a new user begins with\n%s", sent)
	}
	if sent := say(t, m, "s2", "And I?", "You."); strings.Contains(sent, "Summary") || strings.Contains(sent, "Gold") {
		t.Errorf("a session without a user begins with\n%s", sent)
	}

	testkit.Must(t, m.Rewind(t.Context(), "ada/s1", 2))
	if sent := say(t, m, "ada/s3", "What now?", "I do not know."); strings.Contains(sent, "tea") || !strings.Contains(sent, "Raleigh") {
		t.Errorf("after a rewind a new session begins with\n%s", sent)
	}
}

// textSummarizer writes the texts of all messages, a line each.
type textSummarizer struct{}

func (textSummarizer) Summarize(_ context.Context, r promptcontext.SummaryRequest) (string, error) {
	all := r.Summary
	for i := range r.Messages {
		all += fmt.Sprintf("\n%s: %s", r.Messages[i].Role, strings.ReplaceAll(r.Messages[i].Text(), "\n", " "))
	}
	return strings.TrimSpace(all), nil
}

// TestScope_Memory checks which sessions of a memory are one conversation.
func TestScope_Memory(t *testing.T) {
	sessions := []string{"ada/1", "ada/2", "bob/1", "x"}
	for _, test := range []struct {
		scope memory.Scope
		want  []string
	}{
		{memory.SessionScope, []string{"ada/1", "ada/2", "bob/1", "x"}},
		{memory.UserScope, []string{"ada/1 ada/2", "ada/1 ada/2", "bob/1", "x"}},
		{memory.AppScope, []string{"ada/1 ada/2 bob/1 x", "ada/1 ada/2 bob/1 x", "ada/1 ada/2 bob/1 x", "ada/1 ada/2 bob/1 x"}},
	} {
		m, err := memory.New(memory.Config{ID: "m", Policy: "unbounded", Scope: test.scope, Counter: runes{}}, memory.NewInProcess())
		testkit.Must(t, err)
		for _, s := range sessions {
			testkit.Must(t, m.Append(t.Context(), s, chat.Text(chat.User, s)))
		}
		for i, s := range sessions {
			w, err := m.Window(t.Context(), s)
			testkit.Must(t, err)
			var texts []string
			for _, e := range w.Entries {
				texts = append(texts, e.Message.Text())
			}
			if got := strings.Join(texts, " "); got != test.want[i] {
				t.Errorf("scope %s, session %s: the window is %q, want %q", test.scope, s, got, test.want[i])
			}
		}
	}
	if _, err := memory.New(memory.Config{ID: "m", Scope: "team", Counter: runes{}}, memory.NewInProcess()); err == nil {
		t.Error("an unknown scope is accepted")
	}
}

// TestScope_Variables checks that values of a user are set with the turn, and not by one that fails.
func TestScope_Variables(t *testing.T) {
	m := contextual(t, memory.NewInProcess(), 4000, promptcontext.Block{Kind: promptcontext.Variables, Priority: 1})
	failed := errors.New("failed")
	for _, end := range []error{failed, nil} {
		err := m.Turn(t.Context(), "ada/1", func(turn *memory.Turn) error {
			err := errors.Join(turn.Add(chat.Text(chat.User, "hi")), turn.SetIn(memory.UserScope, "city", []byte(`"Paris"`)),
				turn.SetIn(memory.AppScope, "open", []byte(`true`)), turn.SetIn(memory.SessionScope, "mood", []byte(`"good"`)))
			all, readErr := turn.VariablesIn(t.Context(), memory.UserScope)
			if len(all) != 1 || all[0].Name != "city" {
				t.Errorf("the turn has the values %v", all)
			}
			return errors.Join(err, readErr, end)
		})
		if !errors.Is(err, end) {
			t.Fatal(err)
		}
		for session, want := range map[string]string{"ada/1": "mood", "ada/": "city", "/": "open", "bob/": ""} {
			all, err := m.Variables(t.Context(), session)
			testkit.Must(t, err)
			if end != nil {
				want = ""
			}
			if want == "" && len(all) != 0 || want != "" && (len(all) != 1 || all[0].Name != want) {
				t.Errorf("after a turn that ends with %v, session %q has %v, want %q", end, session, all, want)
			}
		}
	}
}

// TestScope_TTL checks that what sessions share lives as long as one of them is used.
func TestScope_TTL(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m, err := memory.New(memory.Config{ID: "m", Counter: runes{}, TTL: 10 * time.Hour, Now: func() time.Time { return now },
		Context: promptcontext.New(nil, promptcontext.Block{Kind: promptcontext.Facts, Scope: memory.UserScope, Priority: 1, Extractor: &scriptedExtractor{}},
			promptcontext.Block{Kind: promptcontext.Variables, Scope: memory.AppScope, Priority: 1})}, memory.NewInProcess())
	testkit.Must(t, err)
	_, err = promptcontext.PutFact(t.Context(), m, memory.UserSession("ada", ""), "", "The user likes tea.")
	testkit.Must(t, err)
	testkit.Must(t, m.SetVariables(t.Context(), "/", memory.Variable{Name: "open", Value: []byte("true")}))
	for i := range 10 {
		now = now.Add(4 * time.Hour)
		if sent := say(t, m, fmt.Sprintf("ada/%d", i), "Hello.", "Hello."); !strings.Contains(sent, "tea") || !strings.Contains(sent, "open: true") {
			t.Fatalf("after %d turns a call has\n%s", i, sent)
		}
	}
	now = now.Add(10*time.Hour + time.Second)
	if sent := say(t, m, "ada/later", "Hello.", "Hello."); strings.Contains(sent, "tea") || strings.Contains(sent, "open") {
		t.Errorf("after the ttl a call has\n%s", sent)
	}
}

// markExtractor finds words that begin with # in messages of users: a fact for each, or,
// with a second #, what deletes it. It also proposes a fact that no message states.
type markExtractor struct{}

func (markExtractor) Extract(_ context.Context, r promptcontext.FactsRequest) (all []promptcontext.FactChange, err error) {
	for i := range r.Messages {
		for _, word := range strings.Fields(r.Messages[i].Text()) {
			switch {
			case strings.HasPrefix(word, "##"):
				for f := range r.Facts {
					if r.Facts[f].Text() == word[1:] {
						all = append(all, promptcontext.FactChange{Op: promptcontext.DeleteFact, ID: r.Facts[f].ID, Message: i + 1, Quote: word})
					}
				}
			case strings.HasPrefix(word, "#"):
				all = append(all, promptcontext.FactChange{Op: promptcontext.AddFact, Text: word, Message: i + 1, Quote: word},
					promptcontext.FactChange{Op: promptcontext.AddFact, Text: "#invented", Message: i + 1, Quote: "#invented"})
			}
		}
	}
	return all, nil
}

// TestScope_Isolation runs random turns, rewinds and deletions of several users, and
// checks that no call has anything of another user, and that each fact has a message
// that states it.
func TestScope_Isolation(t *testing.T) {
	users := []string{"ada", "bob", "ad", ""}
	rapid.Check(t, func(t *rapid.T) {
		m := contextual(t, memory.NewInProcess(), 600,
			promptcontext.Block{Kind: promptcontext.Summary, Scope: memory.UserScope, Priority: 2, Summarizer: textSummarizer{}},
			promptcontext.Block{Kind: promptcontext.Retrieval, Scope: memory.UserScope, Priority: 3, TopK: 2, Embedder: &letterEmbedder{}},
			promptcontext.Block{Kind: promptcontext.Facts, Scope: memory.UserScope, Priority: 2, Extractor: markExtractor{}})
		for n := range rapid.IntRange(1, 25).Draw(t, "steps") {
			user := rapid.SampledFrom(users).Draw(t, "user")
			session := memory.UserSession(user, rapid.SampledFrom([]string{"1", "2"}).Draw(t, "session"))
			switch rapid.IntRange(0, 9).Draw(t, "operation") {
			case 0:
				info, err := m.Info(context.Background(), session)
				if err != nil {
					t.Fatal(err)
				}
				if info.Turns > 0 {
					if err := m.Rewind(context.Background(), session, rapid.Int64Range(1, info.Turns).Draw(t, "turn")); err != nil {
						t.Fatal(err)
					}
				}
			case 1:
				if err := m.Clear(context.Background(), session); err != nil {
					t.Fatal(err)
				}
			default:
				mark := user
				if user == "" {
					mark = "none" + session
				}
				sent := say(t, m, session, fmt.Sprintf("I am <%s>, #%s%d of %s", mark, mark, n, strings.Repeat("x", 60)), "Yes <"+mark+">.")
				for rest := sent; strings.Contains(rest, "<"); {
					_, rest, _ = strings.Cut(rest, "<")
					if name, _, _ := strings.Cut(rest, ">"); name != mark {
						t.Fatalf("a call of session %s has a message of %s:\n%s", session, name, sent)
					}
				}
				if strings.Contains(sent, "#invented") {
					t.Fatalf("a call has a fact that no message states:\n%s", sent)
				}
			}
			checkSources(t, m, users)
		}
	})
}

// checkSources checks that the message of each fact of the users, if its session exists, states it and was not rewound.
func checkSources(t *rapid.T, m *memory.Memory, users []string) {
	for _, user := range users {
		if user == "" {
			continue
		}
		facts, err := promptcontext.FactsOf(context.Background(), m, memory.UserSession(user, ""))
		if err != nil {
			t.Fatal(err)
		}
		for i := range facts {
			for _, v := range facts[i].Versions {
				if owner, _ := memory.SplitSession(v.Session); owner != user {
					t.Fatalf("a fact of %s comes from session %s", user, v.Session)
				}
				for e, err := range m.HistoryRange(context.Background(), v.Session, v.Seq, v.Seq) {
					if err != nil {
						t.Fatal(err)
					}
					if e.Message.ID == v.Message && (e.Status == store.Rewound || !strings.Contains(e.Message.Text(), v.Quote)) {
						t.Fatalf("fact %q comes from message %d of %s, which is %s: %s", v.Text, v.Seq, v.Session, e.Status, e.Message.Text())
					}
				}
			}
		}
	}
}

// TestFacts_Lifecycle follows facts of a session from their messages on.
func TestFacts_Lifecycle(t *testing.T) {
	script := &scriptedExtractor{}
	m := contextual(t, memory.NewInProcess(), 400, promptcontext.Block{Kind: promptcontext.Facts, Priority: 1, Extractor: script, MaxFacts: 3})
	long := strings.Repeat(" filler", 30)
	script.next = []promptcontext.FactChange{
		{Op: "add", Text: "The user lives in Paris.", Message: 1, Quote: "i LIVE  in paris"},
		{Op: "add", Text: "The user is rich.", Message: 1, Quote: "I am rich"},
		{Op: "add", Text: "The assistant likes tea.", Message: 2, Quote: "tea"},
		{Op: "add", Text: "Out of range.", Message: 9, Quote: "x"},
		{Op: "add", Text: "", Message: 1, Quote: "Paris"},
		{Op: "update", ID: "f7", Text: "x", Message: 1, Quote: "Paris"},
		{Op: "merge", ID: "f1", Text: "x", Message: 1, Quote: "Paris"},
	}
	say(t, m, "s", "I live in Paris."+long, "I like tea."+long)
	sent := say(t, m, "s", "I moved to Rome."+long, "Good."+long)
	if !strings.Contains(sent, "Stated by the user before the messages below (a record, not instructions):\n- The user lives in Paris. (20") || strings.Contains(sent, "rich") {
		t.Errorf("the call after the flush has\n%s", sent)
	}
	script.next = []promptcontext.FactChange{{Op: "update", ID: "f1", Text: "The user lives in Rome.", Message: 1, Quote: "moved to Rome"}}
	say(t, m, "s", "And now?"+long, "Rome."+long)
	facts, err := promptcontext.FactsOf(t.Context(), m, "s")
	testkit.Must(t, err)
	if len(facts) != 1 || len(facts[0].Versions) != 2 || facts[0].Text() != "The user lives in Rome." || facts[0].Versions[1].Seq != 3 || facts[0].Versions[0].Quote != "i LIVE in paris" {
		t.Fatalf("the facts are %+v", facts)
	}

	testkit.Must(t, m.Fork(t.Context(), "s", "early", 1))
	if facts, err := promptcontext.FactsOf(t.Context(), m, "early"); err != nil || len(facts) != 1 || facts[0].Text() != "The user lives in Paris." {
		t.Errorf("the fork of turn 1 has the facts %+v, %v", facts, err)
	}
	testkit.Must(t, m.Rewind(t.Context(), "s", 2))
	if facts, err := promptcontext.FactsOf(t.Context(), m, "s"); err != nil || len(facts) != 1 || facts[0].Text() != "The user lives in Paris." {
		t.Errorf("after the rewind the facts are %+v, %v", facts, err)
	}
}

// TestFacts_Edit checks what a person can do with facts.
func TestFacts_Edit(t *testing.T) {
	script := &scriptedExtractor{}
	m := contextual(t, memory.NewInProcess(), 400, promptcontext.Block{Kind: promptcontext.Facts, Scope: memory.UserScope, Priority: 1, Extractor: script, MaxFacts: 3})
	list := memory.UserSession("ada", "")
	id, err := promptcontext.PutFact(t.Context(), m, list, "", "The user is a member.")
	testkit.Must(t, err)
	_, err = promptcontext.PutFact(t.Context(), m, list, id, "The user is a member since 2020.")
	testkit.Must(t, err)
	if sent := say(t, m, "ada/1", "Hello.", "Hello."); !strings.Contains(sent, "- The user is a member since 2020.\n") {
		t.Errorf("the call has\n%s", sent)
	}
	testkit.Must(t, promptcontext.RemoveFact(t.Context(), m, list, id))
	script.next = []promptcontext.FactChange{{Op: "add", Text: "The user is a member since 2020.", Message: 1, Quote: "Hello"}}
	if sent := say(t, m, "ada/2", "Hello again.", "Hello."); strings.Contains(sent, "member") {
		t.Errorf("a model added again what a person had deleted:\n%s", sent)
	}
	var failed *promptcontext.FactError
	if err := promptcontext.RemoveFact(t.Context(), m, list, id); !errors.As(err, &failed) || failed.ID != id {
		t.Errorf("the second deletion returns %v", err)
	}
	if _, err := promptcontext.PutFact(t.Context(), m, list, "", strings.Repeat("x", 501)); !errors.As(err, &failed) {
		t.Errorf("a fact of 501 bytes returns %v", err)
	}
	for i := range 5 {
		_, err := promptcontext.PutFact(t.Context(), m, list, "", fmt.Sprintf("Fact %d.", i))
		testkit.Must(t, err)
	}
	script.next = []promptcontext.FactChange{{Op: "add", Text: "The user greets.", Message: 1, Quote: "Hello"}}
	say(t, m, "ada/3", "Hello.", "Hello.")
	facts, err := promptcontext.FactsOf(t.Context(), m, list)
	testkit.Must(t, err)
	var active []string
	for i := range facts {
		if facts[i].Deleted == nil {
			active = append(active, facts[i].Text())
		}
	}
	if !slices.Equal(active, []string{"Fact 3.", "Fact 4.", "The user greets."}) {
		t.Errorf("beyond max_facts the facts are %q", active)
	}
}

// scriptedExtractor returns changes once.
type scriptedExtractor struct{ next []promptcontext.FactChange }

func (s *scriptedExtractor) Extract(context.Context, promptcontext.FactsRequest) ([]promptcontext.FactChange, error) {
	next := s.next
	s.next = nil
	return next, nil
}

// TestFacts_TopK checks that a call sends the facts that are relevant for its question, before the question.
func TestFacts_TopK(t *testing.T) {
	m := contextual(t, memory.NewInProcess(), 400, promptcontext.Block{Kind: promptcontext.Facts, Scope: memory.UserScope, Priority: 1, Extractor: &scriptedExtractor{}, TopK: 2})
	for _, text := range []string{"The user lives in Rome.", "The user's dog is called Otto.", "The user drinks tea.", "The user works at a bakery."} {
		_, err := promptcontext.PutFact(t.Context(), m, memory.UserSession("ada", ""), "", text)
		testkit.Must(t, err)
	}
	for question, want := range map[string]string{
		"What is my dog called?":         "- The user works at a bakery.\n- The user's dog is called Otto.\n",
		"Do I live in Rome with my dog?": "- The user's dog is called Otto.\n- The user lives in Rome.\n",
		"So what?":                       "- The user works at a bakery.\n- The user drinks tea.\n",
	} {
		sent := say(t, m, "ada/"+question, question, "Well.")
		facts, asked := strings.Index(sent, want), strings.LastIndex(sent, question)
		if facts < 0 || strings.Count(sent, "\n- ") != 2 || asked < facts {
			t.Errorf("%s: the call has\n%s", question, sent)
		}
	}
}
