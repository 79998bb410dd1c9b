package factory

import (
	"context"

	"github.com/qtype-dev/qtype/internal/tool/mockstate"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// NewMock returns a tool that checks its arguments as t does and returns the result of the first mock that fits them. It
// calls nothing. Mocks with a table read and change s.
func NewMock(s *mockstate.State, t spec.Tool, mocks ...*spec.ToolMock) tool.Tool {
	return &mocked{info: tool.Describe(t.Common(), t.Arguments()), mocks: mocks, state: s}
}

// MocksOf returns the mocks of a tool.
func MocksOf(mocks []*spec.ToolMock, id string) (own []*spec.ToolMock) {
	for _, m := range mocks {
		if m != nil && m.ID == id {
			own = append(own, m)
		}
	}
	return own
}

// mocked is a tool without effects.
type mocked struct {
	info  tool.Info
	mocks []*spec.ToolMock
	state *mockstate.State
}

// Info returns the description of the tool in whose place it is.
func (m *mocked) Info() tool.Info { return m.info }

// Call returns a copy of the result.
func (m *mocked) Call(_ context.Context, args map[string]any) (any, error) {
	if _, err := m.info.ValidateArgs(args); err != nil {
		return nil, err
	}
	result, err := m.state.Call(m.mocks, args)
	if err != nil {
		return nil, &tool.FailedError{Tool: m.info.ID, Message: err.Error()}
	}
	return result, nil
}
