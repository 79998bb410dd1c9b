package steps_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// newReports serves a long report of each month, of which a word in the middle differs.
func newReports(t testing.TB) spec.Ref[spec.Tool] {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		month := strings.TrimPrefix(r.URL.Path, "/")
		filler := strings.Repeat("nothing of note happened on this day ", 60)
		fmt.Fprintf(w, `{"report":"%ssold %s bicycles %s"}`, filler, month, filler)
	}))
	t.Cleanup(s.Close)
	return spec.Ref[spec.Tool]{To: &spec.APITool{ToolBase: spec.ToolBase{ID: "report", Name: "report", Description: "Returns a report.", Inputs: declare(t, nil, "month: int")},
		Endpoint: s.URL + "/{month}", Method: "GET", AllowPrivate: true}}
}

// TestAgent_ReadsShortenedResults runs an Agent whose window is too small for the results of
// its tool calls: the model gets short forms, reads a whole result by the number in the note,
// in the same turn and in the next one, and the memory has whole results.
func TestAgent_ReadsShortenedResults(t *testing.T) {
	var read []string // the results of the MemoryTool
	s := newLLM(t, func(n int, req request) reply {
		last := req.Messages[len(req.Messages)-1].String()
		switch n {
		case 1, 2, 3:
			return callsFor([3]string{fmt.Sprint("c", n), "report", fmt.Sprintf(`{"month": %d}`, 410+n)})
		case 4, 7:
			return callsFor([3]string{fmt.Sprint("r", n), "read_message", fmt.Sprintf(`{"message": %d}`, n-1)})
		case 5, 8:
			read = append(read, last)
		}
		return textReply("Done.")
	})
	l := declare(t, nil, "say: text", "answer: text")
	w := newTestEnv(t, s, l, memory.Config{Limits: memory.Limits{"token_limit": 3000, "chat_history_token_ratio": 0.7, "token_flush_size": 100},
		Compact: memory.Compaction{ToolResults: 100, KeepResults: 1}})
	reader := &spec.MemoryTool{ToolBase: spec.ToolBase{ID: "read", Name: "read_message", Description: "Reads a message by its number."}, Read: true, Memory: spec.Ref[*spec.Memory]{To: w.memory}}
	other := w.env.Tool
	w.env.Tool = func(declared spec.Tool) (tool.Tool, error) {
		if m, ok := declared.(*spec.MemoryTool); ok {
			return steps.NewMemoryReadTool(m, w.shared), nil
		}
		return other(declared)
	}
	r := build(t, w.agent(l, []spec.Ref[spec.Tool]{newReports(t), {To: reader}}, true), w.env)
	for _, question := range []string{"How many bicycles were sold?", "Thanks!", "And in the second month?"} {
		if row := driveRows(t, r, l.row(map[string]any{"say": question}))[0]; row.Err != nil {
			t.Fatal(row.Err)
		}
	}
	fourth := lines(s.requests()[3].Messages)
	for i, month := range []string{"411", "412", "413"} {
		sent := fourth[3+2*i]
		note := fmt.Sprintf("the whole result is message %d", 3+2*i)
		if whole := strings.Contains(sent, "sold "+month); whole != (i == 2) || strings.Contains(sent, note) == whole {
			t.Errorf("result %d was sent as %q", i+1, sent)
		}
	}
	if len(read) != 2 || !strings.Contains(read[0], "sold 411 bicycles") {
		t.Fatalf("the model read %q", read)
	}
	var whole int
	for _, line := range w.history(t, "s") {
		if strings.HasPrefix(line, "tool(c") && strings.Contains(line, "bicycles") {
			whole++
		}
	}
	if whole != 3 {
		t.Errorf("%d whole results are stored", whole)
	}
}
