package steps_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// changingSet is a server whose tools change.
type changingSet struct {
	mu       sync.Mutex
	revision int
	names    []string
	failing  bool
	listed   int
}

func (s *changingSet) Info() tool.Info { return tool.Info{ID: "server"} }

func (s *changingSet) Call(context.Context, map[string]any) (any, error) {
	return nil, errors.New("a set cannot be called")
}

func (s *changingSet) Revision() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

func (s *changingSet) Tools(context.Context) ([]tool.Tool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed++
	if s.failing {
		return nil, errors.New("no answer")
	}
	var tools []tool.Tool
	for _, name := range s.names {
		tools = append(tools, &changingTool{s, name})
	}
	return tools, nil
}

// change replaces the tools.
func (s *changingSet) change(failing bool, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision, s.failing, s.names = s.revision+1, failing, names
}

type changingTool struct {
	set  *changingSet
	name string
}

func (c *changingTool) Info() tool.Info {
	return tool.Info{ID: "server/" + c.name, Set: "server", Name: c.name, Parameters: []byte(`{"type":"object"}`)}
}

func (c *changingTool) Call(context.Context, map[string]any) (any, error) {
	switch c.name {
	case "grow":
		c.set.change(false, "grow", "find", "lookup")
	case "fail":
		c.set.change(true)
	}
	return "ran " + c.name, nil
}

// The tools of a server may change during a turn: the next call of the model has the new
// ones. While the server does not answer they stay as they were.
func TestAgent_ChangingTools(t *testing.T) {
	set := &changingSet{names: []string{"grow", "look"}}
	s := newLLM(t, func(n int, _ request) reply {
		call := [][3]string{{"c", "grow", "{}"}, {"c", "lookip", "{}"}, {"c", "lookup", "{}"}}
		if n <= len(call) {
			return reply{calls: call[n-1 : n]}
		}
		return textReply("done")
	})
	l := declare(t, nil, "say: text", "answer: text")
	w := newTestEnv(t, s, l, memory.Config{})
	w.env.Tool = func(spec.Tool) (tool.Tool, error) { return set, nil }
	declared := &spec.MCPTool{Command: "server"}
	declared.ID = "server"
	r := build(t, w.agent(l, []spec.Ref[spec.Tool]{{To: declared}}, true), w.env)
	driveRows(t, r, l.row(map[string]any{"say": "Go"}))
	var offered []string
	for _, req := range s.requests() {
		var names []string
		for _, one := range req.Tools {
			names = append(names, one.Function.Name)
		}
		offered = append(offered, strings.Join(names, " "))
	}
	expect(t, "tools", offered, "grow look", "grow find lookup", "grow find lookup", "grow find lookup")
	got := lines(s.last().Messages)
	for _, want := range []string{"tool(c): ran grow", `tool(c): error: there is no tool "lookip"; tools are grow, find, lookup; did you mean "lookup"?`, "tool(c): ran lookup"} {
		if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, strings.TrimSuffix(want, "?")) }) {
			t.Errorf("the conversation has no %q:\n%s", want, strings.Join(got, "\n"))
		}
	}
	set.change(true)
	before := set.listed
	driveRows(t, r, l.row(map[string]any{"say": "Again"}))
	driveRows(t, r, l.row(map[string]any{"say": "Again"}))
	if n := len(s.last().Tools); n != 3 || set.listed != before+1 {
		t.Errorf("%d tools are offered while the server does not answer, which was asked %d times", n, set.listed-before)
	}
}
