package wire

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Some models bind their reasoning to the exact request that it answered: system messages, tools
// and all messages before. The provider refuses it in any other place. So each answer of such a
// model has a digest of its request, and reasoning is sent only after the same beginning.

// bound sends a request to a model that binds its reasoning to the prefix.
func (c Chat) bound(ctx context.Context, req model.Request, emit Emit) (*model.Response, error) {
	messages, prefix, dropped := withinPrefix(req, c.server.form.Turns.SystemWithin)
	req.Messages = messages
	response, err := c.send(ctx, req, emit)
	if dropped > 0 {
		noteDropped(response, err, fmt.Sprintf("the reasoning of %s, because what comes before has changed", textfmt.Count(dropped, "earlier answer")))
	}
	if response != nil && hasItems(&response.Message) {
		origin := *c.origin
		origin.Prefix = prefix
		response.Message.Origin = &origin
	}
	return response, err
}

// withinPrefix returns the messages of a request without reasoning that is bound to another
// prefix, the digest of the request, and how many messages have lost their reasoning. systemWithin is
// TurnRules.SystemWithin.
func withinPrefix(req model.Request, systemWithin bool) (messages []chat.Message, prefix string, dropped int) {
	h := sha256.New()
	first := func(i int) bool { return NormalizeRole(req.Messages[i].Role) == chat.System }
	if systemWithin {
		_, rest := SplitFirst(req.Messages)
		first = func(i int) bool { return i < len(req.Messages)-len(rest) }
	}
	for i := range req.Messages {
		if first(i) {
			writeMessage(h, &req.Messages[i])
		}
	}
	for _, t := range req.Tools {
		fmt.Fprintf(h, "%q %q %q %q %q %t %t", t.Name, t.Description, t.Parameters, t.Hosted, t.Settings, t.Deferred, t.Strict)
		if t.Grammar != nil {
			fmt.Fprintf(h, " %q %q", t.Grammar.Syntax, t.Grammar.Definition)
		}
		fmt.Fprintln(h)
	}
	messages = slices.Clone(req.Messages)
	for i := range messages {
		m := &messages[i]
		if first(i) {
			continue
		}
		if isBound(m) && m.Origin.Prefix != digestOf(h) {
			*m = withoutReasoning(*m)
			dropped++
		}
		writeMessage(h, m)
	}
	return messages, digestOf(h), dropped
}

// digestOf returns the digest of what was written so far, shortened: it guards against changes by
// policies and documents, not against attackers.
func digestOf(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:12]) }

// writeMessage writes what a provider gets of a message.
func writeMessage(h hash.Hash, m *chat.Message) {
	plain := *m
	plain.ID, plain.Origin = "", nil
	raw, err := plain.MarshalJSON()
	if err != nil { // only for a message that no protocol can carry
		raw = []byte(err.Error())
	}
	_, _ = h.Write(append(raw, '\n')) // a hash never fails
}

// isBound reports whether a message has reasoning with an item.
func isBound(m *chat.Message) bool { return slices.ContainsFunc(m.Blocks, isReasoningItem) }

func isReasoningItem(b chat.Block) bool { return b.Type == chat.ReasoningType && b.Item != nil }

// withoutReasoning returns a message without its reasoning.
func withoutReasoning(m chat.Message) chat.Message {
	m.Blocks = slices.DeleteFunc(slices.Clone(m.Blocks), isReasoningItem)
	return m
}
