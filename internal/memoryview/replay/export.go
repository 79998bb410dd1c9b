package replay

import (
	"context"
	"encoding/json"
	"io"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Export writes the conversation of a session as input of Run: messages as they are now,
// without those that were rewound or deleted, and those of failed turns unless failed is
// set. shortened is how many messages had reasoning, commentary or items of providers, for which OpenAI's
// format has no place.
func Export(ctx context.Context, m *memory.Memory, session string, out io.Writer, failed bool) (shortened int, err error) {
	for e, err := range m.Messages(ctx, session) {
		if err != nil {
			return shortened, err
		}
		if e.Status == store.Failed && !failed {
			continue
		}
		if e.Message.CheckGiven() != nil {
			shortened++
		}
		if _, err := out.Write(append(chat.OpenAI(e.Message), '\n')); err != nil {
			return shortened, err
		}
	}
	return shortened, nil
}

// variablesOperation is the operation that sets named values.
type variablesOperation struct {
	Op  string                     `json:"op"`
	Set map[string]json.RawMessage `json:"set"`
}

// ExportVariables writes the named values of a session, if there are any, as the
// operation of Run that sets them.
func ExportVariables(ctx context.Context, m *memory.Memory, session string, out io.Writer) error {
	variables, err := m.Variables(ctx, session)
	if err != nil || len(variables) == 0 {
		return err
	}
	set := map[string]json.RawMessage{}
	for _, v := range variables {
		set[v.Name] = v.Value
	}
	_, err = out.Write(append(encode(variablesOperation{Op: "variables", Set: set}), '\n'))
	return err
}
