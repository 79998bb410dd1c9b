package runtime

import (
	"context"
	"slices"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// Effect is a call of a tool that may have changed something outside of the conversation.
// Undoing the turn of the call does not undo it.
type Effect struct {
	Tool      string `json:"tool"`           // the name of the tool
	Arguments string `json:"arguments"`      // the start of the JSON text, without secrets; empty for calls of a step
	Step      string `json:"step,omitempty"` // the id of a step without a conversation, such as InvokeTool, that may have called the tool
}

// String returns the call as TOOL(ARGUMENTS), or the tool with its step.
func (e Effect) String() string {
	if e.Step != "" {
		return e.Tool + ", by the step " + e.Step + " if it ran"
	}
	return e.Tool + "(" + e.Arguments + ")"
}

// Limits of what Effects returns.
const (
	maxEffects   = 100
	maxArguments = 120 // characters
)

// Effects returns the calls of tools with effects in a turn of a session and in later ones, as
// the memory has them, oldest first and at most 100: all but those of tools that are known to
// only read, and those that a person rejected. A tool whose calls an Agent has approved has effects.
// The memory does not have the calls of steps without a conversation, such as InvokeTool: after them come the tools
// that such steps of flows with the memory may call.
func (a *App) Effects(ctx context.Context, m *memory.Memory, session string, turn int64) ([]Effect, error) {
	var calls []chat.ToolCall
	rejected := map[string]bool{} // by the ids of calls
	names := map[string]string{}
	undone := false
	for e, err := range m.Messages(ctx, session) {
		if err != nil {
			return nil, err
		}
		if e.Turn < turn || e.Status == store.Failed {
			continue
		}
		undone = true
		for _, c := range e.Message.Calls() {
			calls, names[c.ID] = append(calls, c), c.Name
		}
		if id := e.Message.ToolCallID; id != "" {
			_, rejected[id] = steps.Rejection(names[id], e.Message.Text())
		}
	}
	var found []Effect
	harmless := a.harmless(ctx, calls)
	for _, c := range calls {
		if !rejected[c.ID] && !harmless[c.Name] && len(found) < maxEffects {
			found = append(found, Effect{Tool: c.Name, Arguments: textfmt.Ellipsis(a.opts.Redactor.String(textfmt.OneLine(c.Arguments)), maxArguments)})
		}
	}
	if undone {
		found = append(found, a.stepEffects(m)...)
	}
	return found[:min(len(found), maxEffects)], nil
}

// stepEffects returns the tools with effects that steps of flows with a memory may call outside of a conversation.
func (a *App) stepEffects(m *memory.Memory) []Effect {
	var found []Effect
	known := map[Effect]bool{}
	for _, f := range a.spec.Flows {
		uses, calls := false, []Effect{}
		for s := range f.Plan().All() {
			uses = uses || slices.ContainsFunc(s.Memories(), func(used *spec.Memory) bool { return a.memories[used.ID] == m })
			for _, t := range s.Tools() {
				if s.Conversation() == nil && t.HasEffects() {
					calls = append(calls, Effect{Tool: t.Common().Name, Step: s.Step.EntityID()})
				}
			}
		}
		for _, e := range calls {
			if uses && !known[e] {
				found = append(found, e)
			}
			known[e] = known[e] || uses
		}
	}
	return found
}

// harmless returns the names of tools in calls whose calls change nothing: tools that only read,
// and those by which agents transfer a conversation.
func (a *App) harmless(ctx context.Context, calls []chat.ToolCall) map[string]bool {
	all := map[string]bool{spec.HandBackTool: true}
	for _, f := range a.spec.Flows {
		all[steps.WireName(spec.HandoffTool(f))] = true
	}
	approved := a.approved()
	var sets []spec.Tool // what they have is not declared
	for _, t := range a.spec.Tools {
		switch _, isSet := t.(*spec.MCPTool); {
		case approved[t.EntityID()]:
		case isSet:
			sets = append(sets, t)
		default:
			all[steps.WireName(t.Common().Name)] = !t.HasEffects()
		}
	}
	unknown := func(c chat.ToolCall) bool { _, known := all[c.Name]; return !known }
	for _, t := range sets {
		if !slices.ContainsFunc(calls, unknown) {
			break // no server needs to be asked
		}
		for _, one := range a.toolsOf(ctx, t) {
			if info := one.Info(); !approved[info.ID] {
				all[steps.WireName(info.Name)] = info.ReadOnly
			}
		}
	}
	return all
}

// approved returns the ids of the tools whose calls an Agent has approved.
func (a *App) approved() map[string]bool {
	ids := map[string]bool{}
	for _, f := range a.spec.Flows {
		for s := range f.Plan().All() {
			for _, id := range s.ApprovedTools() {
				ids[id] = true
			}
		}
	}
	return ids
}

// toolsOf returns the tools of a Set; nothing if its server does not answer.
func (a *App) toolsOf(ctx context.Context, t spec.Tool) []tool.Tool {
	made, err := a.tools[t.EntityID()]()
	if err != nil {
		return nil
	}
	set, ok := made.(tool.Set)
	if !ok {
		return nil
	}
	all, _ := set.Tools(ctx)
	return all
}
