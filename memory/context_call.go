package memory

import (
	"fmt"

	"github.com/qtype-dev/qtype/spec/chat"
)

// withContext cuts the context to the room that the messages leave, and is what
// is sent then.
func (t *Turn) withContext(c *promptContext, b Budget, sent []*Entry) ([]chat.Message, error) {
	room, err := t.room(c, sent)
	if err != nil {
		return nil, err
	}
	t.call.call.Room = room
	if b.ContextWindow > 0 {
		room = min(room, b.ContextWindow-b.Answer-b.Tools-c.systemTokens()-t.call.tokens)
	}
	c.shrinkTo(max(room, 0))
	t.call.call.Context = c.report()
	for i := range t.call.call.Context {
		t.call.call.Context[i].Text = "" // an event may stand where texts are not encrypted
	}
	return c.messages(sent), nil
}

// room is how many tokens token_limit leaves for the context.
func (t *Turn) room(c *promptContext, sent []*Entry) (int, error) {
	p, ok := t.policy.(*flush)
	if !ok { // newComposer sees to it
		return 0, fmt.Errorf("memory %s: context is for policy flush", t.memory.id)
	}
	said := 0
	for _, e := range sent {
		said += e.Tokens
	}
	room := max(p.limit-said-c.systemTokens(), 0)
	if fixed := c.minTokens(); fixed > room {
		return 0, &ContextError{Memory: t.memory.id, Limit: p.limit, Messages: said, System: c.systemTokens(), Context: fixed}
	}
	return room, nil
}

// turnContext is what the context tells in one turn. It is worked out once, so that
// the calls of an agent's loop begin with the same bytes.
type turnContext struct {
	variables []Variable    // the one that was set last at the end
	question  string        // the id of the newest user message
	recalled  []contextUnit // what was found for it
	problems  map[BlockKind]string
}

// refreshContext brings the context up to date before a call: what the call no longer
// sends is folded and embedded, and what is like the newest user message found.
func (t *Turn) refreshContext() error {
	c := t.memory.context
	if c == nil {
		return nil
	}
	if t.told == nil {
		t.told = &turnContext{variables: t.mergedVariables(), problems: map[BlockKind]string{}}
	}
	if c.summary != nil && t.told.problems[Summary] == "" { // what failed is not tried again in this turn
		problem, err := t.updateSummary()
		if err != nil {
			return err
		}
		t.told.problems[Summary] = problem
	}
	if c.retrieval == nil {
		return nil
	}
	question := t.newestUser()
	if question == nil || question.ID == t.told.question {
		return nil
	}
	found, problem, err := t.retrieve(question.Text())
	if err != nil {
		return err
	}
	t.told.question, t.told.recalled, t.told.problems[Retrieval] = question.ID, found, problem
	return nil
}

// newestUser is the newest user message of the session and the turn, nil where there is none.
func (t *Turn) newestUser() *chat.Message {
	for _, entries := range [][]*Entry{t.staged, t.base.entries} {
		if i := lastUser(entries); i >= 0 {
			return &entries[i].Message
		}
	}
	return nil
}
