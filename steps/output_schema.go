package steps

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// maxRepairs is how often a model is told that its answer does not fit, before the row fails.
const maxRepairs = 2

// outputSchema is the type that an answer must have: it is asked for as a JSON schema,
// and what comes is checked.
type outputSchema struct {
	of     *spec.Variable
	schema json.RawMessage
}

func newOutputSchema(v *spec.Variable) *outputSchema {
	return &outputSchema{v, tool.SchemaOf(v.Type.Custom)}
}

// applyTo asks for the shape: of providers that can hold a model to a schema, and
// for all others in words. They stand at the end of the system message, which is
// the same in every call, and are kept nowhere.
func (s *outputSchema) applyTo(req *model.Request) {
	if s == nil {
		return
	}
	req.Schema = &model.Schema{Name: wireName(s.of.Type.Name), JSON: s.schema}
	words := chat.Block{Type: "text", Text: "When you answer, answer with one JSON object that fits this JSON schema, and with nothing else: " + string(s.schema)}
	req.Messages = slices.Clone(req.Messages)
	if len(req.Messages) == 0 || req.Messages[0].Role != chat.System {
		req.Messages = slices.Insert(req.Messages, 0, chat.Message{Role: chat.System, Blocks: []chat.Block{words}})
		return
	}
	first := &req.Messages[0]
	first.Blocks = append(first.Blocks[:len(first.Blocks):len(first.Blocks)], words)
}

// parse makes a value of an answer. A model that could not be held to the schema
// may have put its JSON into a fence.
func (s *outputSchema) parse(text string) (any, error) {
	text = strings.TrimSpace(text)
	if rest, fenced := strings.CutPrefix(text, "```"); fenced {
		if _, after, ok := strings.Cut(rest, "\n"); ok {
			rest = after
		}
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "```"))
	}
	v, err := value.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	v, err = value.Assign(s.of, v)
	if err != nil {
		return nil, fmt.Errorf("it is not of the type %s: %w", s.of.Type, err)
	}
	return v, nil
}

// retryInvalid tells the model when its answer does not fit, so that it is asked
// again; after the second time that is an error. The memory holds the answer that fits only.
func (a *agent) retryInvalid(answer *chat.Message, d *conversation, mended *int) (again bool, err error) {
	if a.shape == nil || isEmpty(*answer) {
		return false, nil
	}
	_, wrong := a.shape.parse(answer.Text())
	switch {
	case wrong == nil:
		return false, nil
	case *mended >= maxRepairs:
		return false, fmt.Errorf("the model's answer does not fit the type %s, also after it was told %d times: %w", a.shape.of.Type, *mended, wrong)
	}
	*mended++
	answer.ToolCalls = nil
	told := chat.Text(chat.User, fmt.Sprintf("This answer cannot be read: %s. Answer again, with the JSON object alone.", wrong))
	d.aside = append(d.aside, *answer, told)
	return true, nil
}

// writeOutput puts the answer into the output: as a record where a type of the
// document's own is declared.
func (a *agent) writeOutput(row *Row, answer chat.Message, emit Emit) error {
	if a.shape == nil {
		a.answer(row, a.out, answer)
		return emit(row)
	}
	v, err := a.shape.parse(answer.Text())
	if err != nil {
		return fmt.Errorf("the model's answer does not fit: %w", err)
	}
	a.out.write(row, v)
	return emit(row)
}
