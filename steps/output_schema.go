package steps

import (
	"context"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// MaxRepairs is how often a model may correct an answer that does not match its type.
const MaxRepairs = 2

// outputSchema is the type that an answer must have: requested as a JSON schema, and
// checked.
type outputSchema struct {
	of *spec.Variable
	model.Schema
}

func newOutputSchema(v *spec.Variable) *outputSchema {
	return &outputSchema{v, model.Schema{Name: WireName(v.Type.Name), JSON: tool.SchemaOf(v.Type.Custom)}}
}

// require adds what an answer must be to a request: its form, by the type of the output or by the
// caller's instructions, and a call of a tool.
func (s *llmStep) require(ctx context.Context, req *model.Request) {
	req.MustCall = mustCall(ctx, s.id, req.Tools, req.Messages)
	switch asked := instructionsFor(ctx, s.id).Schema; {
	case s.schema != nil:
		requestForm(req, &s.schema.Schema)
	case len(asked) > 0:
		requestForm(req, &model.Schema{Name: "answer", JSON: asked})
	}
}

// requestForm requests the schema: from providers that support one, and from all of them
// at the end of the system message, which is the same in every call and is not stored.
func requestForm(req *model.Request, schema *model.Schema) {
	req.Schema = schema
	instruction := chat.Block{Type: "text", Text: "When you answer, answer with one JSON object that fits this JSON schema, and with nothing else: " + string(schema.JSON)}
	req.Messages = slices.Clone(req.Messages)
	if len(req.Messages) == 0 || req.Messages[0].Role != chat.System {
		req.Messages = slices.Insert(req.Messages, 0, chat.Message{Role: chat.System, Blocks: []chat.Block{instruction}})
		return
	}
	first := &req.Messages[0]
	first.Blocks = append(first.Blocks[:len(first.Blocks):len(first.Blocks)], instruction)
}

// parse converts an answer to a value. A model without support for schemas may have
// put its JSON into a code fence, or prose around it.
func (s *outputSchema) parse(text string) (any, error) {
	object, err := findJSON(text, func(r *value.Record) bool {
		_, err := value.Assign(s.of, r)
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	v, err := value.Assign(s.of, object)
	if err != nil {
		return nil, fmt.Errorf("it is not of the type %s: %w", s.of.Type, err)
	}
	return v, nil
}

// retryInvalid reports an answer that does not match its type to the model, which
// may answer again, MaxRepairs times. The memory stores the valid answer only.
func (a *agent) retryInvalid(answer *chat.Message, d *conversation, repairs *int) (again bool, err error) {
	if a.schema == nil || isEmpty(*answer) {
		return false, nil
	}
	_, wrong := a.schema.parse(answer.Text())
	switch {
	case wrong == nil:
		return false, nil
	case *repairs >= MaxRepairs:
		return false, fmt.Errorf("the answer does not match type %s after %d retries: %w", a.schema.of.Type, *repairs, wrong)
	}
	*repairs++
	invalid := answer.WithoutCalls()
	correction := chat.Text(chat.User, fmt.Sprintf("This answer is not valid: %s. Answer again, with the JSON object only.", wrong))
	d.extra = append(d.extra, extra{d.last, []chat.Message{invalid, correction}})
	return true, nil
}

// writeOutput sets the output: to a record where a custom type is declared.
func (a *agent) writeOutput(row *Row, answer chat.Message, emit Emit) error {
	if a.schema == nil {
		a.answer(row, a.out, answer)
		return emit(row)
	}
	v, err := a.schema.parse(answer.Text())
	if err != nil {
		return fmt.Errorf("the answer does not match: %w", err)
	}
	a.out.write(row, v)
	return emit(row)
}
