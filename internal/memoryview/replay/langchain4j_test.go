package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/memoryview/replay"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// otherMessage is a message for testdata/LangChain4jMemory.java.
type otherMessage struct {
	Role   chat.Role   `json:"role"`
	Text   string      `json:"text"`
	Name   string      `json:"name,omitempty"`
	Call   string      `json:"call,omitempty"`
	Calls  []otherCall `json:"calls,omitempty"`
	Tokens int         `json:"tokens"`

	message chat.Message
}

type otherCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// otherLine is an operation on both memories.
type otherLine struct {
	Op       string         `json:"op"` // add, set, clear or limit
	Messages []otherMessage `json:"messages,omitempty"`
	Max      int            `json:"max,omitempty"`
}

type otherTranscript struct {
	Policy string      `json:"policy"`
	Max    int         `json:"max"`
	First  bool        `json:"first"` // keep_system_first
	Lines  []otherLine `json:"lines"`
}

// otherResult is what LangChain4j has after each line.
type otherResult struct {
	Windows [][]string `json:"windows"`
	Tokens  [][]int    `json:"tokens"` // of the line's messages, by its estimator for OpenAI
}

// transcripts generates transcripts. The same seed gives the same ones.
type transcripts struct {
	*rand.Rand
	count memory.Counter
}

// text returns words of several scripts. The number makes it unique.
func (g *transcripts) text(number int) string {
	all := []string{"the", "weather", "Oslo", "straße", "日本語", "Привет", "🙂", "1,234.5", "is\n", "don't", "  ", "fn(x)", "naïve", "café"}
	var b strings.Builder
	for range g.IntN(25) {
		b.WriteString(all[g.IntN(len(all))] + " ")
	}
	return b.String() + strconv.Itoa(number)
}

func (g *transcripts) arguments() string {
	fields := []string{`"city":"Oslo"`, `"days":3`, `"text":"日本語 and more words"`, `"exact":true`}
	return "{" + strings.Join(fields[:g.IntN(len(fields)+1)], ",") + "}"
}

// message returns a message that follows others: a malformed conversation has results and
// calls in any order.
func (g *transcripts) message(number int, open *[]string, malformed bool) otherMessage {
	m := otherMessage{Text: g.text(number)}
	kind := g.IntN(10)
	switch {
	case len(*open) > 0 && !(malformed && g.IntN(4) == 0):
		m.Role, m.Call = chat.Tool, (*open)[0]
		*open = (*open)[1:]
	case malformed && kind == 0:
		m.Role, m.Call = chat.Tool, fmt.Sprint("unknown", number)
	case kind == 1:
		m.Role, m.Text = chat.System, []string{"be brief", "be kind", "be exact and cite"}[g.IntN(3)]
	case kind < 6:
		m.Role = chat.User
		if g.IntN(4) == 0 {
			m.Name = "ada"
		}
	default:
		m.Role = chat.Assistant
		for i := range max(g.IntN(8)-3, 0) {
			m.Calls = append(m.Calls, otherCall{ID: fmt.Sprintf("c%d_%d", number, i), Name: []string{"find", "get_weather", "search_orders"}[g.IntN(3)], Arguments: g.arguments()})
			*open = append(*open, m.Calls[i].ID)
		}
		if len(m.Calls) > 0 && g.IntN(2) == 0 {
			m.Text = ""
		}
	}
	m.message = chat.Text(m.Role, m.Text)
	if m.Text == "" {
		m.message.Blocks = nil
	}
	m.message.Name, m.message.ToolCallID = m.Name, m.Call
	for _, c := range m.Calls {
		m.message = m.message.With(chat.ToolCall(c))
	}
	m.Tokens = memory.Tokens(g.count, m.message)
	return m
}

// draw returns a transcript of up to 40 lines.
func (g *transcripts) draw(malformed bool) otherTranscript {
	limit := func(policy string) int {
		if policy == "message_window" {
			return 1 + g.IntN(12)
		}
		return 1 + g.IntN(400)
	}
	t := otherTranscript{Policy: []string{"message_window", "token_window"}[g.IntN(2)], First: g.IntN(2) == 0}
	t.Max = limit(t.Policy)
	var open []string
	for number := range 5 + g.IntN(36) {
		line := otherLine{Op: "add"}
		if !malformed && len(open) == 0 {
			switch g.IntN(30) {
			case 0:
				line.Op = "clear"
			case 1:
				line = otherLine{Op: "limit", Max: limit(t.Policy)}
			case 2:
				line.Op = "set"
				for i := range 1 + g.IntN(5) {
					if m := g.message(1000*(number+1)+i, &open, false); m.Role != chat.System {
						line.Messages = append(line.Messages, m)
					}
				}
			}
		}
		if line.Op == "add" || line.Op == "set" && len(line.Messages) == 0 {
			line = otherLine{Op: "add", Messages: []otherMessage{g.message(number, &open, malformed)}}
		}
		t.Lines = append(t.Lines, line)
	}
	return t
}

// input returns the transcript in the form of replay.
func (t *otherTranscript) input() *bytes.Buffer {
	var in bytes.Buffer
	for _, l := range t.Lines {
		var messages []string
		for _, m := range l.Messages {
			messages = append(messages, string(chat.OpenAI(m.message)))
		}
		switch l.Op {
		case "add":
			in.WriteString(messages[0])
		case "set":
			fmt.Fprintf(&in, `{"op":"set","messages":[%s]}`, strings.Join(messages, ","))
		case "clear":
			in.WriteString(`{"op":"clear"}`)
		case "limit":
			fmt.Fprintf(&in, `{"op":"limit",%q:%d}`, t.limit(), l.Max)
		}
		in.WriteByte('\n')
	}
	return &in
}

func (t *otherTranscript) limit() string {
	return map[string]string{"message_window": "max_messages", "token_window": "max_tokens"}[t.Policy]
}

// replayed returns the window after each line as LangChain4jMemory.java writes it, and the
// number of the line that was rejected, 0 for none.
func (t *otherTranscript) replayed(tb testing.TB, count memory.Counter) (windows [][]string, rejected int) {
	tb.Helper()
	cfg := memory.Config{ID: "m", Policy: spec.Policy(t.Policy), Limits: memory.Limits{t.limit(): float64(t.Max)}, KeepSystemFirst: t.First, Counter: count}
	var out bytes.Buffer
	err := replay.Run(context.Background(), cfg, t.input(), &out, replay.Options{Each: true, Format: replay.JSON})
	if line, ok := errors.AsType[*replay.LineError](err); ok {
		if _, ok := errors.AsType[*memory.BalanceError](err); !ok {
			tb.Fatalf("%v\n%s", err, t.input())
		}
		rejected = line.Line
	} else {
		testkit.Must(tb, err)
	}
	for text := range strings.Lines(out.String()) {
		var line struct {
			Window []map[string]json.RawMessage `json:"window"`
		}
		testkit.Must(tb, json.Unmarshal([]byte(text), &line))
		window := []string{}
		for _, fields := range line.Window {
			delete(fields, "tokens")
			raw, err := json.Marshal(fields)
			testkit.Must(tb, err)
			m, err := chat.ParseOpenAI(raw)
			testkit.Must(tb, err)
			window = append(window, messageKey(m))
		}
		windows = append(windows, window)
	}
	return windows, rejected
}

func messageKey(m chat.Message) string {
	key := string(m.Role) + " " + m.Text()
	if m.Role == chat.Tool {
		key += " " + m.ToolCallID
	}
	for _, c := range m.Calls() {
		key += " " + c.ID
	}
	return key
}

// withoutOrphans returns a window without the results whose call is not in it, and their number.
func withoutOrphans(window []string) (kept []string, orphans int) {
	kept = []string{}
	for _, key := range window {
		words := strings.Fields(key)
		call := words[len(words)-1]
		if words[0] == "tool" && !slices.ContainsFunc(window, func(other string) bool {
			return strings.HasPrefix(other, "assistant ") && slices.Contains(strings.Fields(other), call)
		}) {
			orphans++
			continue
		}
		kept = append(kept, key)
	}
	return kept, orphans
}

// langChain4j runs transcripts through LangChain4j.
func langChain4j(t *testing.T, all []otherTranscript) (results []otherResult) {
	t.Helper()
	folder := os.Getenv("QTYPE_LANGCHAIN4J")
	if folder == "" {
		servertest.Need(t, fmt.Errorf("%w: set QTYPE_LANGCHAIN4J to a folder with the jars of langchain4j and langchain4j-open-ai", servertest.ErrMissing))
	}
	var in, problems bytes.Buffer
	encoder := json.NewEncoder(&in)
	for _, one := range all {
		testkit.Must(t, encoder.Encode(one))
	}
	c := exec.CommandContext(t.Context(), "java", "-cp", filepath.Join(folder, "*"), "testdata/LangChain4jMemory.java")
	c.Stdin, c.Stderr = &in, &problems
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, problems.String())
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for decoder.More() {
		var r otherResult
		testkit.Must(t, decoder.Decode(&r))
		results = append(results, r)
	}
	if len(results) != len(all) {
		t.Fatalf("%d results of %d transcripts", len(results), len(all))
	}
	return results
}

// transcriptCount is how many transcripts are compared: QTYPE_TRANSCRIPTS, by default 500.
func transcriptCount(t *testing.T) int {
	text := os.Getenv("QTYPE_TRANSCRIPTS")
	if text == "" {
		return 500
	}
	n, err := strconv.Atoi(text)
	testkit.Must(t, err)
	return n
}

// TestRun_LangChain4j compares the windows of random transcripts with those of LangChain4j's
// own classes after each line. A third of the transcripts is malformed: LangChain4j takes
// them, a memory here rejects the first line that breaks a pair. Without the results that
// LangChain4j keeps although it has evicted their call, the windows are equal.
func TestRun_LangChain4j(t *testing.T) {
	count, err := tokenizer.For("o200k_base")
	testkit.Must(t, err)
	const seed = 1
	g := &transcripts{Rand: rand.New(rand.NewPCG(seed, seed)), count: count}
	var all []otherTranscript
	for i := range transcriptCount(t) {
		all = append(all, g.draw(i%3 == 2))
	}
	windows, orphaned, malformed := 0, 0, 0
	tokens := &tokenComparison{count: count}
	for i, other := range langChain4j(t, all) {
		ours, rejected := all[i].replayed(t, count)
		if want := all[i].unbalanced(); rejected != want {
			t.Fatalf("transcript %d: line %d was rejected, want line %d\n%s", i, rejected, want, all[i].input())
		}
		if rejected > 0 {
			malformed++
		}
		for line, window := range ours {
			want, orphans := withoutOrphans(other.Windows[line])
			if !slices.Equal(window, want) {
				t.Fatalf("transcript %d, line %d of %s %d:\ngot  %q\nwant %q\n%s", i, line+1, all[i].Policy, all[i].Max, window, want, all[i].input())
			}
			windows++
			if orphans > 0 {
				orphaned++
			}
		}
		tokens.add(t, all[i], other.Tokens)
	}
	t.Logf("%d transcripts, %d of them rejected as malformed; %d windows are equal, LangChain4j has a result without its call in %d of them", len(all), malformed, windows, orphaned)
	tokens.log(t)
}

// unbalanced returns the number of the first line that breaks a pair, 0 for none. System
// messages may be between a call and its results.
func (t *otherTranscript) unbalanced() int {
	open := map[string]bool{}
	for i, l := range t.Lines {
		if l.Op == "clear" || l.Op == "set" {
			clear(open)
		}
		for _, m := range l.Messages {
			switch {
			case m.Role == chat.System:
			case m.Role == chat.Tool && open[m.Call]:
				delete(open, m.Call)
			case m.Role == chat.Tool || len(open) > 0:
				return i + 1
			}
			for _, c := range m.Calls {
				open[c.ID] = true
			}
		}
	}
	return 0
}
