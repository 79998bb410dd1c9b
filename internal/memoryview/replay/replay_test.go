package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/memoryview/replay"
	"github.com/qtype-dev/qtype/memory"
)

// runes counts characters.
type runes struct{}

func (runes) Count(text string) int { return len([]rune(text)) }

// config has a chat share of 40 characters and evicts at least 10 at a time.
func config() memory.Config {
	return memory.Config{ID: "chat_memory", Limits: memory.Limits{"token_limit": 80, "chat_history_token_ratio": 0.5, "token_flush_size": 10}, Counter: runes{}}
}

func run(t rapid.TB, in string, opts replay.Options) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := replay.Run(context.Background(), config(), strings.NewReader(in), &out, opts)
	return out.String(), err
}

func lines(text ...string) string { return strings.Join(text, "\n") + "\n" }

func TestRun_Each(t *testing.T) {
	got, err := run(t, "\uFEFF"+lines(
		`{"role":"system","content":"be <kind>"}`,
		`{"role": "user", "content": "12345678"}`,
		``,
		`{"content":"b","role":"assistant","tool_calls":[{"id":"c1","name":"f","arguments":{"a": 1}}]}`,
		`{"role":"tool","tool_call_id":"c1","content":null}`,
		`{"role":"user","content":"q"}`,
		`{"op":"clear"}`,
		`{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"https://a.example/i"}}]}`,
	), replay.Options{Each: true, Format: replay.JSON})
	if err != nil {
		t.Fatal(err)
	}
	system := `{"role":"system","content":"be <kind>","tokens":18}`
	first := `{"role":"user","content":"12345678","tokens":15}`
	call := `{"content":"b","role":"assistant","tool_calls":[{"id":"c1","name":"f","arguments":{"a":1}}],"tokens":33}`
	result := `{"role":"tool","tool_call_id":"c1","content":null,"tokens":16}`
	want := lines(
		`{"line":1,"tokens":18,"window":[`+system+`],"window_tokens":0,"evicted":[],"history":1}`,
		`{"line":2,"tokens":15,"window":[`+system+`,`+first+`],"window_tokens":15,"evicted":[],"history":2}`,
		`{"line":4,"tokens":33,"window":[`+system+`,`+first+`,`+call+`],"window_tokens":48,"evicted":[],"history":3}`,
		`{"line":5,"tokens":16,"window":[`+system+`,`+first+`,`+call+`,`+result+`],"window_tokens":64,"evicted":[],"history":4}`,
		`{"line":6,"tokens":8,"window":[`+system+`,{"role":"user","content":"q","tokens":8}],"window_tokens":8,"evicted":[`+first+`,`+call+`,`+result+`],"history":5}`,
		`{"line":7,"tokens":0,"window":[],"window_tokens":0,"evicted":[],"history":0}`,
		`{"line":8,"tokens":265,"window":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"https://a.example/i"}}],"tokens":265}],"window_tokens":265,"evicted":[],"history":1}`,
	)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAtTheEnd(t *testing.T) {
	got, err := run(t, lines(
		`{"role":"user","content":"12345678901234"}`,
		`{"role":"user","content":"b"}`,
		`{"role":"user","content":"12345678901234567"}`,
		`{"role":"user","content":"d"}`,
	), replay.Options{Format: replay.JSON})
	want := lines(`{"line":4,"tokens":8,"window":[{"role":"user","content":"b","tokens":8},{"role":"user","content":"12345678901234567","tokens":24},{"role":"user","content":"d","tokens":8}],"window_tokens":40,"evicted":[{"role":"user","content":"12345678901234","tokens":21}],"history":4}`)
	if err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	got, err = run(t, "", replay.Options{Format: replay.JSON})
	if want := lines(`{"line":0,"tokens":0,"window":[],"window_tokens":0,"evicted":[],"history":0}`); err != nil || got != want {
		t.Errorf("no input: %v\n%s", err, got)
	}
}

// TestRun_Operations checks that set evicts only what does not fit, and that limits
// apply from the next message on.
func TestRun_Operations(t *testing.T) {
	got, err := run(t, lines(
		`{"role":"system","content":"s"}`,
		`{"role":"user","content":"old"}`,
		`{"op":"set","messages":[{"role":"user","content":"1234567890123456"},{"role":"user","content":"1234567890"},{"role":"system","content":"n"}]}`,
		`{"op":"limit","token_limit":30,"chat_history_token_ratio":1}`,
		`{"role":"assistant","content":"a"}`,
		`{"role":"user","content":"u"}`,
		`{"op":"set","messages":[]}`,
	), replay.Options{Each: true, Format: replay.JSON})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`window system:s, evicted , 0 tokens, 1 total`,
		`window system:s user:old, evicted , 10 tokens, 2 total`,
		`window system:n user:1234567890123456 user:1234567890, evicted , 40 tokens, 5 total`,
		`window system:n user:1234567890123456 user:1234567890, evicted , 40 tokens, 5 total`,
		`window system:n user:1234567890 assistant:a, evicted user:1234567890123456, 30 tokens, 6 total`,
		`window system:n user:u, evicted user:1234567890 assistant:a, 8 tokens, 7 total`,
		`window , evicted , 0 tokens, 7 total`,
	}
	for i, line := range strings.Split(strings.TrimSpace(got), "\n") {
		if brief := summary(t, line); brief != want[i] {
			t.Errorf("line %d\ngot  %s\nwant %s", i+1, brief, want[i])
		}
	}
}

func summary(t *testing.T, line string) string {
	t.Helper()
	type message struct {
		Role, Content string
		Tokens        int
	}
	var o struct {
		Window, Evicted []message
		WindowTokens    int `json:"window_tokens"`
		History         int
	}
	if err := json.Unmarshal([]byte(line), &o); err != nil {
		t.Fatal(err)
	}
	brief := func(ms []message) string {
		var out []string
		for _, m := range ms {
			out = append(out, m.Role+":"+m.Content)
		}
		return strings.Join(out, " ")
	}
	return fmt.Sprintf("window %s, evicted %s, %d tokens, %d total", brief(o.Window), brief(o.Evicted), o.WindowTokens, o.History)
}

func TestRun_Errors(t *testing.T) {
	for in, want := range map[string]string{
		`hello`:                        `line 2: a message is not valid JSON: invalid character 'h' looking for beginning of value`,
		`{"role":"user","content":"x"`: `line 2: a message is cut off: the JSON text ends too early`,
		`[1]`:                          `line 2: a message must be a JSON object, not a list`,
		`{"role":"usr","content":"x"}`: `line 2: unknown role "usr", did you mean "user"?`,
		`{"role":"user","content":"x","tokens":3}`: `line 2: a message has no field "tokens"`,
		`{"role":"user","content":"x"} {}`:         `line 2: a message is followed by more text`,
		"{\"role\":\"user\",\"content\":\"\xff\"}": `line 2: the line is not UTF-8 text`,
		`{"op":"forget"}`:                          `line 2: unknown operation "forget": an operation is clear, set, limit, variables or read`,
		`{"op":5}`:                                 `line 2: "op" must be a string: clear, set, limit, variables or read`,
		`{"op":"clear","messages":[]}`:             `line 2: the operation clear has no field "messages"`,
		`{"op":"set"}`:                             `line 2: the operation set needs "messages", a list`,
		`{"op":"set","messages":null}`:             `line 2: the operation set needs "messages", a list`,
		`{"op":"set","messages":[{"role":"user","content":"x"},{"content":"x"}]}`: `line 2: messages[1]: a message needs a "role"`,
		`{"op":"limit"}`:                                               `line 2: the operation limit names no limit`,
		`{"op":"limit","max_messages":3}`:                              `line 2: max_messages is a limit of policy message_window; this memory has policy flush`,
		`{"op":"limit","token_limit":0}`:                               `line 2: token_limit must be a positive whole number, not 0`,
		`{"op":"limit","token_limit":2.5}`:                             `line 2: token_limit must be a positive whole number, not 2.5`,
		`{"op":"limit","token_flush_size":"9"}`:                        `line 2: token_flush_size must be a positive whole number, not "9"`,
		`{"op":"limit","token_flush_size":null}`:                       `line 2: token_flush_size must be a positive whole number, not null`,
		`{"op":"limit","chat_history_token_ratio":1.01}`:               `line 2: chat_history_token_ratio must be a number above 0 and at most 1, not 1.01`,
		`{"op":"limit","token_limit":5,"chat_history_token_ratio":-1}`: `line 2: chat_history_token_ratio must be a number above 0 and at most 1, not -1`,
	} {
		out, err := run(t, lines(`{"role":"user","content":"good"}`, in), replay.Options{Each: true, Format: replay.JSON})
		var lineErr *replay.LineError
		if !errors.As(err, &lineErr) || lineErr.Line != 2 || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", in, err, want)
		}
		if strings.Count(out, "\n") != 1 {
			t.Errorf("%s: output before the error: %q", in, out)
		}
	}
}

func TestRun_Canceled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := replay.Run(ctx, config(), strings.NewReader(lines(`{"role":"user","content":"x"}`)), &bytes.Buffer{}, replay.Options{})
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "line") {
		t.Errorf("got %v", err)
	}
	if err := replay.Run(context.Background(), memory.Config{ID: "m"}, strings.NewReader(""), &bytes.Buffer{}, replay.Options{}); err == nil {
		t.Error("Run accepted an invalid config")
	}
}

func TestRun_Text(t *testing.T) {
	got, err := run(t, lines(
		`{"role":"system","content":"You answer for a bookshop."}`,
		`{"role":"user","content":"Where is\nmy parcel?"}`,
		`{"role":"assistant","content":"It is on its way."}`,
		`{"role":"user","content":"When?"}`,
		`{"role":"assistant","tool_calls":[{"id":"c","name":"f","arguments":"{}"}]}`,
		`{"role":"tool","tool_call_id":"c","content":"9"}`,
	), replay.Options{})
	const want = `line 6, 6 messages so far
system        You answer for a bookshop.                                            35
──────────── 2 messages flushed: 55 tokens ───────────────────────────────────────────
user          When?                                                                 12
assistant     → f({})                                                               27
  f           9                                                                     17
window ▕████████████████████████████████████████  56 of 40 tokens

`
	if err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}

// TestRun_EachMatchesEnd checks that the output for each line adds up to the output
// at the end.
func TestRun_EachMatchesEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in []string
		for range rapid.IntRange(1, 30).Draw(t, "lines") {
			in = append(in, rapid.Custom(drawLine).Draw(t, "line"))
		}
		each, err := run(t, lines(in...), replay.Options{Each: true, Format: replay.JSON})
		if err != nil {
			t.Fatal(err)
		}
		end, err := run(t, lines(in...), replay.Options{Format: replay.JSON})
		if err != nil {
			t.Fatal(err)
		}
		type outcome struct {
			Line, Tokens, History int
			Window, Evicted       []json.RawMessage
			WindowTokens          int `json:"window_tokens"`
		}
		var evicted []json.RawMessage
		var last, whole outcome
		for line := range strings.Lines(each) {
			last = outcome{}
			if err := json.Unmarshal([]byte(line), &last); err != nil {
				t.Fatal(err)
			}
			evicted = append(evicted, last.Evicted...)
		}
		last.Evicted = evicted
		if err := json.Unmarshal([]byte(end), &whole); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(last, whole, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("each line, and the end: %s", d)
		}
	})
}

func drawLine(t *rapid.T) string {
	text := strings.Repeat("x", rapid.IntRange(0, 30).Draw(t, "size"))
	message := fmt.Sprintf(`{"role":"%s","content":"%s"}`, rapid.SampledFrom([]string{"user", "assistant", "system"}).Draw(t, "role"), text)
	switch rapid.IntRange(0, 12).Draw(t, "kind") {
	case 0:
		return `{"op":"clear"}`
	case 1:
		return `{"op":"set","messages":[` + message + `,` + message + `]}`
	case 3:
		return `{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"find","arguments":"{}"}}]}` + "\n" +
			fmt.Sprintf(`{"role":"tool","tool_call_id":"c","content":"%s"}`, text)
	case 2:
		return fmt.Sprintf(`{"op":"limit","token_limit":%d}`, rapid.IntRange(1, 200).Draw(t, "limit"))
	}
	return message
}

func FuzzRun(f *testing.F) {
	f.Add([]byte(`{"role":"user","content":"x"}` + "\n" + `{"op":"limit","token_limit":5}`))
	f.Add([]byte(`{"op":"set","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, format := range []replay.Format{replay.Text, replay.JSON} {
			var out bytes.Buffer
			err := replay.Run(t.Context(), config(), bytes.NewReader(in), &out, replay.Options{Each: true, Format: format})
			var lineErr *replay.LineError
			if err != nil && (!errors.As(err, &lineErr) || strings.Contains(err.Error(), "\n")) {
				t.Fatalf("%q: %v", in, err)
			}
			for line := range strings.Lines(out.String()) {
				if format == replay.JSON && !json.Valid([]byte(line)) {
					t.Fatalf("%q gives %q", in, line)
				}
			}
		}
	})
}
