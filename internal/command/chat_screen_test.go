//go:build linux

package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// chatServer speaks the protocol of OpenAI. What it answers follows from the last message.
type chatServer struct {
	*httptest.Server
	next     chan struct{} // the rest of a "slow" answer is sent after one of these
	limited  atomic.Bool   // the next call is rejected with 429
	released chan struct{} // what hangs until the end of the test
}

func newChatServer(t *testing.T) *chatServer {
	s := &chatServer{next: make(chan struct{}, 10), released: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(func() {
		close(s.released)
		s.Close()
	})
	return s
}

// hostile is an answer that would change the terminal.
const hostile = "safe\x1b]52;c;c3RvbGVu\x07 \x1b[2J\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202eright\r\n\x9b5A end"

func (s *chatServer) answer(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Messages []struct {
			Role    string
			Content any
		}
		Model string
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	last := fmt.Sprint(request.Messages[len(request.Messages)-1].Content)
	if s.limited.CompareAndSwap(true, false) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error": {"message": "slow down", "type": "requests"}}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta map[string]any, finish any) {
		text, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
		fmt.Fprintf(w, "data: %s\n\n", text)
		w.(http.Flusher).Flush()
	}
	for _, piece := range s.pieces(last, request.Model, len(request.Messages)) {
		switch {
		case piece == "WAIT":
			select {
			case <-s.next:
			case <-r.Context().Done():
				return
			}
		case piece == "CALL":
			call := map[string]any{"index": 0, "id": "call_1", "type": "function", "function": map[string]any{"name": "pay", "arguments": `{"amount": 5, "note": "\u001b]52;c;eA==\u0007"}`}}
			send(map[string]any{"tool_calls": []any{call}}, nil)
			send(map[string]any{}, "tool_calls")
		case strings.HasPrefix(piece, "THINK "):
			send(map[string]any{"reasoning_content": strings.TrimPrefix(piece, "THINK ")}, nil)
		default:
			send(map[string]any{"content": piece}, nil)
		}
	}
	send(map[string]any{}, "stop")
	fmt.Fprint(w, `data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`+"\n\ndata: [DONE]\n\n")
}

// pieces returns the deltas of an answer.
func (s *chatServer) pieces(last, model string, messages int) []string {
	switch {
	case strings.Contains(last, "markdown"):
		return []string{"# Plan\n\nSome **bo", "ld** and `code`.\n", "- one\n- two", "\n", "WAIT", "\n| a | b |\n|---|--:|\n| x | 1 |\n\n```go\nif x == \"one\" { // 1\n\ty = 1\n}\n```\n```\nplain 1\n```\r", "\nDo", "ne."}
	case strings.Contains(last, "hostile"):
		return []string{hostile}
	case strings.Contains(last, "think"):
		return []string{"THINK First this, ", "THINK then that.", "Thought."}
	case strings.Contains(last, "hang"):
		return []string{"Begin", "WAIT", "never"}
	case strings.Contains(last, "pay five"):
		return []string{"CALL"}
	case strings.Contains(last, "paid"):
		return []string{"It is paid."}
	case strings.Contains(last, "emoji"):
		return []string{"漢字 👍 e\u0301 done"}
	}
	return []string{fmt.Sprintf("%s answers: %s (%d messages)", model, strings.ToUpper(last), messages)}
}

// chatFolder writes the document of the tests.
func chatFolder(t *testing.T, s *chatServer) string {
	t.Helper()
	folder := t.TempDir()
	document := `id: tales
memories: [{id: notes, policy: token_window, max_tokens: 4000}]
models:
  - {type: Model, id: teller, provider: openai, model_id: gpt-5.4, base_url: "` + s.URL + `"}
  - {type: Model, id: other, provider: openai, model_id: gpt-6-luna, base_url: "` + s.URL + `"}
tools:
  - {type: ClientTool, id: pay, name: pay, description: Pays, inputs: [{id: amount, type: int}, {id: note, type: text}], outputs: [{id: receipt, type: text}]}
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: Agent, id: narrate, model: teller, memory: notes, tools: [pay], approve: [pay], inputs: [message], outputs: [answer]}]
`
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "app.qtype.yaml"), []byte(document), 0o600))
	return folder
}

// TestChatScreen_Editing types with cursor keys, pastes lines, completes and recalls.
func TestChatScreen_Editing(t *testing.T) {
	server := newChatServer(t)
	folder := chatFolder(t, server)
	d, cmd := newDisplay(t, folder, 90, 24, "chat", "app.qtype.yaml", "--session", "me")
	d.ready("")
	d.golden("begin")
	d.say("wrld\x1b[D\x1b[D\x1b[Do\x01hello \x1b[F!")
	d.ready("hello world!")
	d.say("\r")
	d.see("gpt-5.4 answers: HELLO WORLD!")
	d.ready("")
	d.say("\x1b[200~one\ntwo 漢字\r\nthree\x1b[201~")
	d.see("you> one\n...> two 漢字\n...> three")
	d.golden("pasted")
	d.say("\r")
	d.see("gpt-5.4 answers: ONE", "TWO 漢字", "THREE (3 messages)")
	d.ready("")
	d.say("/se\t")
	d.see("/session  /sessions")
	d.golden("completion")
	d.say("\x15/session m\t")
	d.ready("/session me")
	d.say("\x03")
	d.ready("")
	d.say("\x1b[A\x1b[A\x1b[A\x1b[A")
	d.ready("hello world!")
	d.say("\x15")
	d.quit(cmd)
	history := testkit.ReadFile(t, filepath.Join(folder, ".qtype", "chat_history"))
	if want := "\"hello world!\"\n\"one\\ntwo 漢字\\nthree\"\n"; history != want {
		t.Errorf("history %q, want %q", history, want)
	}
	if info, err := os.Stat(filepath.Join(folder, ".qtype", "chat_history")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("history: %v, %v", info, err)
	}

	d, cmd = newDisplay(t, folder, 90, 24, "chat", "app.qtype.yaml", "--session", "me")
	d.see("resuming me, 4 messages")
	d.ready("")
	d.golden("resumed")
	d.say("draft\x12O")
	d.see("search \"O\"> one\n...> two 漢字\n...> three")
	d.golden("search")
	d.say("\x12")
	d.see("search \"O\"> hello world!")
	d.say("\x13")
	d.see("search \"O\"> one\n")
	d.say("x")
	d.see("no match for \"Ox\"> one\n")
	d.say("\x7f\x7fWORLD")
	d.see("search \"WORLD\"> hello world!")
	d.say("\x03")
	d.ready("draft")
	d.say("\x12wor\x1b[D?")
	d.ready("hello world?!")
	d.say("\x1b[F\x15\u202eab")
	d.ready("\uFFFDab")
	d.say("\x03")
	d.ready("")
	d.say("\x10\x10")
	d.ready("hello world!")
	d.say("\x03")
	d.ready("")
	d.say("\x03")
	d.see("Ctrl-C again or Ctrl-D ends the conversation")
	d.say("\x03")
	d.waitEnd(cmd)
}

// TestChatScreen_Answers shows Markdown while it is streamed, reasoning in one line, a rejected
// call that is repeated, a stopped answer, and nothing that changes the terminal.
func TestChatScreen_Answers(t *testing.T) {
	server := newChatServer(t)
	d, cmd := newDisplay(t, chatFolder(t, server), 90, 40, "chat", "app.qtype.yaml")
	d.ready("")
	d.say("some markdown\r")
	d.see("• two", "answering", "Ctrl-C stops it")
	server.next <- struct{}{}
	d.see("Done.")
	d.ready("")
	d.golden("markdown")
	d.say("think\r")
	d.see("reasoned for", "4 words", "Thought.")
	d.ready("")
	d.say("/details\r")
	d.see("reasoning:\nFirst this, then that.")
	d.ready("")
	server.limited.Store(true)
	d.say("after the limit\r")
	d.see("to retry after HTTP 429 Too Many Requests", "Ctrl-C stops it")
	d.see("answers: AFTER THE LIMIT")
	d.ready("")
	d.say("hang please\r")
	d.see("Begin", "answering")
	d.say("\x03")
	d.see("(stopped)")
	d.ready("")
	d.say("/undo\r")
	d.see(`undone: "hang please"`)
	d.ready("")
	d.say("hostile\r")
	d.see(" end", "tokens 400 in") // the status follows the prompt
	d.ready("")
	d.golden("hostile")
	for _, sequence := range []string{"\x1b]52", "\x1b]0;", "\x1b[2J", "\u202e", "\x9b"} {
		if strings.Contains(d.raw.String(), sequence) {
			t.Errorf("%q of an answer was written to the terminal", sequence)
		}
	}
	d.say("emoji\r")
	d.see("漢字 👍 e\u0301 done")
	d.ready("")
	d.say("hang again\r")
	d.see("again", "Begin", "answering")
	d.say("\x03\x03")
	d.waitEnd(cmd)
}

// TestChatScreen_Approval requests approval before a call of a tool, and keeps the answers out of the history.
func TestChatScreen_Approval(t *testing.T) {
	server := newChatServer(t)
	folder := chatFolder(t, server)
	d, cmd := newDisplay(t, folder, 90, 24, "chat", "app.qtype.yaml")
	d.ready("")
	d.say("pay five\r")
	d.see("→ pay", "may step narrate call it? [y/N, or a reason]>")
	d.golden("approval")
	d.say("y\r")
	d.see("receipt (text)>")
	d.say("paid, secret-code\r")
	d.see("✓", "It is paid.")
	d.ready("")
	d.golden("approved")
	d.say("/details\r")
	d.see("/details", "✓", "secret-code")
	d.say("/undo\r")
	d.see(`undone: "pay five"`, "not undone: pay({")
	d.quit(cmd)
	if strings.Contains(d.raw.String(), "\x1b]52") {
		t.Error("the arguments of a tool were written to the terminal as a sequence")
	}
	if history := testkit.ReadFile(t, filepath.Join(folder, ".qtype", "chat_history")); history != "\"pay five\"\n\"/details\"\n\"/undo\"\n" {
		t.Errorf("history %q", history)
	}
}

// TestChatScreen_Commands types each command, also with wrong arguments.
func TestChatScreen_Commands(t *testing.T) {
	server := newChatServer(t)
	folder := chatFolder(t, server)
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "note.txt"), []byte("a note\n"), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "empty.txt"), nil, 0o600))
	d, cmd := newDisplay(t, folder, 100, 60, "chat", "app.qtype.yaml", "--session", "me")
	d.ready("")
	d.golden("wide")
	for _, step := range []struct{ typed, seen string }{
		{"/undo", "has no messages yet"},
		{"/retry", "has no messages yet"},
		{"/copy", "there is no answer yet"},
		{"/save out.md", "has no messages yet"},
		{"/details", "had no reasoning and called no tools"},
		{"/memory", "has no conversations in"},
		{"first", "answers: FIRST (1 messages)"},
		{"/retry", "again: \"first\"\ngpt-5.4 answers: FIRST (1 messages)"},
		{"/edit second", "answers: SECOND (1 messages)"},
		{"/undo", "undone: \"second\""},
		{"third", "answers: THIRD (1 messages)"},
		{"/memory", "window ▕"},
		{"/history", "rewound"},
		{"/copy", "characters copied"},
		{"/save out.md", "2 messages written to out.md"},
		{"/save out.md", "out.md exists: use the name of a new file"},
		{"/save", "/save needs an argument: /save FILE"},
		{"/attach none.txt", "none.txt: cannot be attached: no such file"},
		{"/attach empty.txt", "empty.txt: cannot be attached: it is empty"},
		{"/attach .", ".: cannot be attached: it is not a file"},
		{"/attach note.txt", "note.txt (text, 7 B) is sent with the next message"},
		{"with it", "A NOTE"},
		{"/model", "models of the document: teller, other"},
		{"/model tellr", "did you mean \"teller\"?"},
		{"/model other", "gpt-6-luna answers from now on"},
		{"who", "gpt-6-luna answers: WHO (5 messages)"},
		{"/new me", "session \"me\" exists, with"},
		{"/new", "new session s2"},
		{"hello", "answers: HELLO (1 messages)"},
		{"/sessions", "memory   session"},
		{"/session you", "there is no session \"you\""},
		{"/session me", "resuming me, "},
		{"/clear", "memory notes: session me deleted"},
		{"/undo now", "/undo takes no argument"},
		{"/memroy", "did you mean \"memory\"?"},
		{"//slash", "answers: /SLASH"},
		{"/help", "Tab completes commands"},
	} {
		d.say(step.typed + "\r")
		d.see("you> "+step.typed+"\n", step.seen)
		d.ready("")
		d.say("\x0c") // the next text is looked for on an empty screen
		d.until("empty screen", func(screen string) bool { return !strings.Contains(screen, "you> "+step.typed) })
	}
	d.say("/edit\r")
	d.ready("/slash")
	d.say("es\r")
	d.see("edit> /slashes", "answers: /SLASHES (1 messages)")
	d.ready("")
	d.say("/quit\r")
	d.waitEnd(cmd)
	if saved := testkit.ReadFile(t, filepath.Join(folder, "out.md")); !strings.Contains(saved, "# tales, session me\n\n## You, ") || !strings.Contains(saved, "gpt-5.4 answers: THIRD") {
		t.Errorf("saved %q", saved)
	}
}

// TestChatScreen_Narrow wraps and cuts on a small terminal, which then changes its size.
func TestChatScreen_Narrow(t *testing.T) {
	server := newChatServer(t)
	d, cmd := newDisplay(t, chatFolder(t, server), 30, 8, "chat", "app.qtype.yaml")
	d.ready("")
	d.say("one 漢字 two 漢字 three 漢字")
	d.see("you> one 漢字 two 漢字 three\n漢字\n")
	d.golden("narrow")
	d.say("\r")
	d.see("THREE 漢字", "\nyou>")
	testkit.Must(t, unix.IoctlSetWinsize(int(d.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 10, Col: 60}))
	d.cells.Resize(60, 10)
	d.see("session default · window")
	d.say("some markdown\r")
	server.next <- struct{}{}
	d.see("Done.", "\nyou>", "window 3 %") // the status follows the prompt
	d.goldenFrom("resized", "  <2>go")     // how many lines above are still on the screen depends on the parts of the answer
	d.quit(cmd)
}

// TestChatScreen_NoColor writes no styles.
func TestChatScreen_NoColor(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	server := newChatServer(t)
	d, cmd := newDisplay(t, chatFolder(t, server), 90, 24, "chat", "app.qtype.yaml")
	d.ready("")
	server.next <- struct{}{}
	d.say("some markdown\r")
	d.see("# Plan", "**bold**", "Done.")
	d.ready("")
	d.quit(cmd)
	if i := strings.Index(d.raw.String(), "\x1b[1"); strings.Contains(d.raw.String(), "\x1b[2m") || i >= 0 && strings.HasPrefix(d.raw.String()[i:], "\x1b[1m") {
		t.Errorf("styles were written: %q", d.raw.String())
	}
}

// TestRunTrace_OnTerminal prints the trace of a run as a tree.
func TestRunTrace_OnTerminal(t *testing.T) {
	folder := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "app.yaml"), []byte(`id: app
models: [{type: Model, id: parrot, provider: mock, rules: [{match: '(?s)(.*)', text: 'Echo: $1'}]}]
flows:
  - id: main
    variables: [{id: message, type: text}, {id: answer, type: text}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: LLMInference, id: reply, model: parrot, inputs: [message], outputs: [answer]}]
`), 0o600))
	d, cmd := newDisplay(t, folder, 90, 24, "run", "app.yaml", "-i", "hello", "--trace")
	d.readAll()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	d.golden("trace")
}
