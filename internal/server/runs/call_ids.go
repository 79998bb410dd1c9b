package runs

// CallIDs are the ids of calls of tools that have none: those of a step that calls a tool itself. The
// zero value has none. It is for one goroutine.
type CallIDs struct {
	named map[calledTool]string
}

// calledTool is what an event has of a call without an id.
type calledTool struct {
	step, tool string
	row        int64
}

// Of returns the id of the call of an event. If the event is the begin of a call without an id,
// name makes one.
func (c *CallIDs) Of(ev *Event, begins bool, name func() string) string {
	if ev.Call != "" {
		return ev.Call
	}
	called := calledTool{ev.Step, ev.Tool, ev.Row}
	if begins {
		if c.named == nil {
			c.named = map[calledTool]string{}
		}
		c.named[called] = name()
	}
	return c.named[called]
}
