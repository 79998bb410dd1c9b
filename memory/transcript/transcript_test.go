package transcript_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/transcript"
	"github.com/qtype-dev/qtype/spec/chat"
)

// runes counts characters.
type runes struct{}

func (runes) Count(text string) int { return len([]rune(text)) }

func newMemory(t *testing.T) *memory.Memory {
	m, err := memory.New(memory.Config{ID: "m", Policy: "message_window", Limits: memory.Limits{"max_messages": 3}, Counter: runes{}}, memory.NewInProcess())
	testkit.Must(t, err)
	return m
}

// whole uses every kind of line: a role that OpenAI's form does not have,
// a failed turn, a rewound one and one that the policy evicted.
const whole = `{"role":"user","content":"q1","qtype":{"id":"a","turn":1,"tokens":9,"time":"2026-11-22T10:00:00Z","status":"flushed"}}
{"role":"assistant","content":"a1","qtype":{"id":"b","turn":1,"tokens":12,"time":"2026-11-22T10:00:00Z","status":"flushed","message":{"id":"b","role":"chatbot","blocks":[{"type":"text","content":"a1"}]}}}
{"role":"user","content":"q2","qtype":{"id":"c","turn":2,"tokens":9,"time":"2026-11-22T10:01:00Z","status":"failed"}}
{"role":"user","content":"q2","qtype":{"id":"d","turn":3,"tokens":9,"time":"2026-11-22T10:02:00Z","status":"rewound"}}
{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/x;base64,AAE="}}],"qtype":{"id":"e","turn":5,"tokens":263,"time":"2026-11-22T10:04:00Z","status":"in window"}}
{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}],"qtype":{"id":"f","turn":5,"tokens":27,"time":"2026-11-22T10:04:00Z","status":"in window"}}
{"role":"tool","content":"3","tool_call_id":"1","qtype":{"id":"g","turn":5,"tokens":17,"time":"2026-11-22T10:04:00Z","status":"in window"}}
{"op":"event","event":{"kind":"failed","turn":2,"from":3,"to":3,"messages":1,"tokens":9,"reason":"no answer","time":"2026-11-22T10:01:00Z"}}
{"op":"event","event":{"kind":"rewind","turn":4,"from":4,"to":4,"messages":1,"tokens":9,"rewound":3,"reason":"turn 3 and later ones were rewound","time":"2026-11-22T10:03:00Z"}}
{"op":"event","event":{"kind":"flush","turn":5,"from":1,"to":2,"messages":2,"tokens":23,"rule":"message_window","before":5,"limit":3,"unit":"messages","reason":"5 messages in the window exceeded max_messages 3; 2 messages had to leave, 2 messages left","time":"2026-11-22T10:04:00Z"}}
{"op":"variables","set":{"plan":"Gold"},"turns":{"plan":5}}
`

func TestImport_Whole(t *testing.T) {
	m := newMemory(t)
	testkit.Must(t, transcript.Import(t.Context(), m, "s", strings.NewReader(whole)))
	var out strings.Builder
	testkit.Must(t, transcript.Export(t.Context(), m, "s", &out))
	if d := cmp.Diff(whole, out.String()); d != "" {
		t.Error(d)
	}
	w, err := m.Window(t.Context(), "s")
	testkit.Must(t, err)
	if len(w.Entries) != 3 || w.Entries[0].Message.ID != "e" {
		t.Errorf("the window has %d messages", len(w.Entries))
	}
	err = transcript.Import(t.Context(), m, "s", strings.NewReader(whole))
	var exists *memory.SessionExistsError
	if !errors.As(err, &exists) || err.Error() != `memory m: session "s" exists already` {
		t.Errorf("got %v", err)
	}
}

// turnsWhileWriting adds a turn to a session whenever something is written.
type turnsWhileWriting struct {
	strings.Builder
	turn func()
}

func (w *turnsWhileWriting) Write(text []byte) (int, error) {
	w.turn()
	return w.Builder.Write(text)
}

// TestExport_InUse: what is exported while turns are added can be imported, and is the session as it was
// when the export began.
func TestExport_InUse(t *testing.T) {
	m := newMemory(t)
	n := 0
	turn := func() {
		n++
		testkit.Must(t, m.Turn(t.Context(), "s", func(t *memory.Turn) error {
			if err := t.Set("n", []byte(fmt.Sprint(n))); err != nil {
				return err
			}
			return t.Add(chat.Text(chat.User, fmt.Sprint("q", n)), chat.Text(chat.Assistant, fmt.Sprint("a", n)))
		}))
	}
	turn()
	turn()
	out := &turnsWhileWriting{turn: turn}
	testkit.Must(t, transcript.Export(t.Context(), m, "s", out))
	testkit.Must(t, transcript.Import(t.Context(), m, "copy", strings.NewReader(out.String())))
	w, err := m.Window(t.Context(), "copy")
	testkit.Must(t, err)
	variables, err := m.Variables(t.Context(), "copy")
	testkit.Must(t, err)
	if got := w.Text(); !strings.Contains(got, "a2") || strings.Contains(got, "q3") || string(variables[0].Value) != "2" {
		t.Errorf("the window is %s, the variables %v", got, variables)
	}
}

// TestImport_Bare checks that the policy applies to messages without details.
func TestImport_Bare(t *testing.T) {
	m := newMemory(t)
	testkit.Must(t, transcript.Import(t.Context(), m, "s", strings.NewReader(`
{"role":"user","content":"q1"}
{"role":"assistant","content":"a1"}

{"role":"user","content":"q2"}
{"role":"assistant","content":"a2"}
{"op":"variables","set":{"plan":"Gold"}}`)))
	var got []string
	for e, err := range m.History(t.Context(), "s") {
		testkit.Must(t, err)
		got = append(got, e.Message.Text()+" "+e.Status.String())
		if want := map[string]int64{"q": 1, "a": 1}[e.Message.Text()[:1]] + int64(e.Message.Text()[1]-'1'); e.Turn != want {
			t.Errorf("%s is in turn %d", e.Message.Text(), e.Turn)
		}
	}
	if d := cmp.Diff([]string{"q1 flushed", "a1 in window", "q2 in window", "a2 in window"}, got); d != "" {
		t.Error(d)
	}
	variables, err := m.Variables(t.Context(), "s")
	testkit.Must(t, err)
	if len(variables) != 1 || string(variables[0].Value) != `"Gold"` {
		t.Errorf("variables %v", variables)
	}
	testkit.Must(t, m.Fork(t.Context(), "s", "t", 1))
	w, err := m.Window(t.Context(), "t")
	testkit.Must(t, err)
	if len(w.Entries) != 2 {
		t.Errorf("the window after the first turn has %d messages", len(w.Entries))
	}
}

func TestImport_Invalid(t *testing.T) {
	message := func(role, details string) string {
		return `{"role":"` + role + `","content":"x","qtype":{` + details + `}}` + "\n"
	}
	for _, c := range []struct{ in, want string }{
		{"", "line 1: it has no messages"},
		{"[]", "line 1: it is not a JSON object"},
		{"\n{\"role\":\"x\"}", `line 2: unknown role "x": a role is assistant, chatbot, developer, function, model, system, tool, user`},
		{`{"op":"clear"}`, `line 1: an operation of a transcript is session, event or, once, variables and context, not "clear"`},
		{`{"op":"event","event":{"kindd":1}}`, `line 1: unknown field "kindd"`},
		{`{"op":"event","event":{"turn":"1"}}`, `line 1: "event.turn" must not be string`},
		{message("user", `"id":"a","turn":2`) + message("user", `"id":"b","turn":1`), "line 2: turn 1 follows turn 2"},
		{message("user", `"id":"a","turn":1`) + `{"role":"user","content":"x"}`, "line 2: either all messages have a turn, or none"},
		{message("user", `"id":"a","turn":1`) + message("user", `"id":"a","turn":1`), `line 2: an earlier message has the id "a"`},
		{message("user", `"id":"a","turn":-1`), "line 1: invalid turn -1"},
		{message("user", `"id":"a","status":"failed"`), "line 1: without turns there are no statuses and no events"},
		{message("tool", `"id":"a","turn":1`), `line 1: the tool result for call "" does not follow its call`},
		{`{"role":"user","content":"x"}` + "\n" + `{"role":"assistant","tool_calls":[{"id":"1","name":"f","arguments":"{}"}]}` + "\n" + `{"role":"user","content":"x"}`,
			`line 2: the tool call "1" (f) has no result`},
		{message("user", `"id":"a","turn":1`) + "\n" + `{"op":"event","event":{"kind":"x","turn":1}}`, `line 3: unknown kind "x"`},
		{message("user", `"id":"a","turn":1`) + `{"op":"event","event":{"kind":"flush","turn":1,"from":1,"to":2}}`, "line 2: there are no messages 1 to 2"},
		{message("user", `"id":"a","turn":1`) + `{"op":"variables","set":{"":1}}`, `line 2: memory m: variable "" cannot be stored: a name is 1 to 128 bytes of printable text`},
		{message("assistant", `"id":"a","turn":1,"message":{"role":"assistant","blocks":[],"tool_calls":[{"id":"1","name":"f","arguments":"{}"}]}`) +
			`{"role":"tool","tool_call_id":"1","content":"x","qtype":{"id":"b","turn":1}}` + "\n" + `{"op":"event","event":{"kind":"flush","turn":1,"from":2,"to":2}}`,
			"line 3: of the events, some divide a tool call from its results"},
		{"{\"role\":\"user\",\"content\":\"" + strings.Repeat("x", 64<<20) + "\"}", "line 1: the line is longer than 64 MiB"},
	} {
		m := newMemory(t)
		err := transcript.Import(t.Context(), m, "s", strings.NewReader(c.in))
		var invalid *transcript.LineError
		if !errors.As(err, &invalid) || err.Error() != c.want {
			t.Errorf("%.200s\ngot  %v\nwant %s", c.in, err, c.want)
		}
		if head, err := m.Head(t.Context(), "s"); err != nil || head.Version != 0 {
			t.Errorf("a session was created: %v, %v", head, err)
		}
	}
}
