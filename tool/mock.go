package tool

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/qtype-dev/qtype/spec"
)

// NewMock returns a tool that checks its arguments as t does and returns the same result for every call. It calls nothing.
func NewMock(t spec.Tool, m *spec.ToolMock) Tool {
	return &mocked{info: Describe(t.Common(), t.Arguments()), mock: m}
}

// mocked is a tool without effects.
type mocked struct {
	info Info
	mock *spec.ToolMock
}

// Info returns the description of the tool in whose place it is.
func (m *mocked) Info() Info { return m.info }

// Call returns a copy of the result.
func (m *mocked) Call(_ context.Context, args map[string]any) (any, error) {
	if _, err := m.info.ValidateArgs(args); err != nil {
		return nil, err
	}
	if m.mock.Error != "" {
		return nil, &FailedError{Tool: m.info.ID, Message: m.mock.Error}
	}
	text, err := json.Marshal(m.mock.Result)
	if err != nil {
		return nil, &FailedError{Tool: m.info.ID, Message: "the mock's result cannot be encoded as JSON"}
	}
	var result any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&result)
	return result, err
}
