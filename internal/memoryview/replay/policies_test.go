package replay_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/memoryview/replay"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
)

// TestRun_Policies covers the position of the system message, truncated texts, and
// the limits of each policy.
func TestRun_Policies(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, c := range []struct {
		name string
		cfg  memory.Config
		in   string
		want []string
	}{
		{"position of the system message", memory.Config{Policy: spec.PolicyMessageWindow, Limits: memory.Limits{"max_messages": 3}}, lines(
			`{"role":"user","content":"1"}`, `{"role":"system","content":"s"}`, `{"role":"system","content":"s"}`,
			`{"role":"user","content":"2"}`, `{"role":"user","content":"3"}`, `{"op":"limit","max_messages":2}`, `{"op":"limit","max_messages":3}`,
		), []string{
			`window user:1, evicted , 8 tokens, 1 total`,
			`window user:1 system:s, evicted , 18 tokens, 2 total`,
			`window user:1 system:s, evicted , 18 tokens, 2 total`,
			`window user:1 system:s user:2, evicted , 26 tokens, 3 total`,
			`window system:s user:2 user:3, evicted user:1, 26 tokens, 4 total`,
			`window system:s user:3, evicted user:2, 18 tokens, 4 total`,
			`window system:s user:2 user:3, evicted , 26 tokens, 4 total`,
		}},
		{"cut", memory.Config{Policy: spec.PolicyRoundWindow, Limits: memory.Limits{"n_rounds": 2, "max_context": 66}}, lines(
			`{"role":"user","content":"1"}`, `{"role":"assistant","content":[{"type":"text","text":"`+long+`"}]}`, `{"op":"limit","max_context":5}`,
		), []string{
			`window user:1, evicted , 8 tokens, 1 total`,
			`window assistant:Notice: Chat history truncated due to maximum context window. xxxx, evicted user:1, 78 tokens, 2 total`,
			`window assistant:xxxxx, evicted , 17 tokens, 2 total`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.ID, c.cfg.Counter = "m", runes{}
			var out bytes.Buffer
			if err := replay.Run(t.Context(), c.cfg, strings.NewReader(c.in), &out, replay.Options{Each: true, Format: replay.JSON}); err != nil {
				t.Fatal(err)
			}
			parts := strings.ReplaceAll(out.String(), `[{"type":"text","text":`, ``)
			parts = strings.ReplaceAll(parts, `"}],"tokens"`, `","tokens"`)
			for i, line := range strings.Split(strings.TrimSpace(parts), "\n") {
				if got := summary(t, line); got != c.want[i] {
					t.Errorf("line %d\ngot  %s\nwant %s", i+1, got, c.want[i])
				}
			}
		})
	}
}
