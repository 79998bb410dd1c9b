package a2a

import (
	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/qtype-dev/qtype/internal/server/schema"
)

// AnswersOf is answersOf for tests.
var AnswersOf = answersOf

// ReadInputs reads a message and decodes the inputs of a flow.
func ReadInputs(m *sdk.Message, flow *schema.Flow) (map[string]any, error) {
	c, err := read(m.Parts)
	if err != nil {
		return nil, err
	}
	record, err := c.inputs(flow)
	if err != nil {
		return nil, err
	}
	row, wrong := flow.Decode(record, "", nil)
	if len(wrong) > 0 {
		return nil, schema.Invalid(wrong)
	}
	return row, nil
}
