package testrun

import (
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/tool/factory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// checkEffects fails a turn whose flow would read or write files, query a database or start
// a program, unless the test allows or replaces the step or tool.
func (r *testRun) checkEffects(t *spec.Turn, flow *spec.Flow) {
	for s := range flow.Plan().All() {
		step := s.Step.Common()
		if effect := spec.Effect(s.Step); effect != "" && !r.env.allows(step.ID, spec.TypeName(s.Step)) && !(r.env.fixtures != "" && spec.UsesFilesOnly(s.Step)) {
			r.diagnostics.Add(apptest.Failed.At(turnSpan(t), "step %s (%s) %s, which tests may not", step.ID, spec.TypeName(s.Step), effect).
				WithHint("%sif it should, write allow: [%s]", fixturesHint(s.Step), step.ID))
			return
		}
		for _, used := range s.Tools() {
			id, effect := used.EntityID(), r.env.effectOf(used)
			if effect == "" || r.env.isMocked(id) || r.env.allows(id, spec.TypeName(used)) {
				continue
			}
			r.diagnostics.Add(apptest.Failed.At(turnSpan(t), "step %s: tool %s %s, which tests may not", step.ID, id, effect).
				WithHint("add a mock: tools: [{id: %s, result: …}], or write allow: [%[1]s]", id))
			return
		}
	}
}

// fixturesHint returns the advice for a step whose files fixtures can have.
func fixturesHint(s spec.Step) string {
	if !spec.UsesFilesOnly(s) {
		return ""
	}
	return "put its files in a folder and write fixtures: with its path, or, "
}

// effectOf returns what a tool does outside of the process; empty for a tool that does
// nothing, or whose calls are recorded or refused.
func (e *testEnv) effectOf(t spec.Tool) string {
	switch program := factory.Program(t); {
	case factory.IsServer(t) && e.session != nil:
		return ""
	case program != "":
		return "starts the program " + program
	case factory.IsServer(t) && e.allowsServer():
		return "calls a server"
	}
	return ""
}

// allows reports whether the test may really use the step or the tool with an id and a type.
func (e *testEnv) allows(id, kind string) bool {
	return e.effects || slices.Contains(e.allow, id) || slices.Contains(e.allow, kind)
}

// isMocked reports whether the test replaces a tool.
func (e *testEnv) isMocked(id string) bool {
	return slices.ContainsFunc(e.tools, func(m *spec.ToolMock) bool { return m.ID == id })
}

// allowsServer reports whether the test allows anything that may call servers.
func (e *testEnv) allowsServer() bool { return e.effects || len(e.allow) > 0 }

// refusedServer returns a tool that fails in place of one that calls a server, where the
// test allows others to call servers; nil for other tools.
func (e *testEnv) refusedServer(t spec.Tool) tool.Tool {
	if _, calls := t.(*spec.APITool); !calls || e.session != nil || !e.allowsServer() || e.allows(t.EntityID(), spec.TypeName(t)) {
		return nil
	}
	failure := &spec.ToolMock{ID: t.EntityID(), Error: fmt.Sprintf("a test cannot call servers: add a mock of the tool under tools, recordings, or allow: [%s]", t.EntityID())}
	return tool.NewMock(t, failure)
}
