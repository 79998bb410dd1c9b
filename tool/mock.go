package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

// NewMock returns a tool that checks its arguments as t does and returns the result of the first mock that fits them. It calls nothing.
func NewMock(t spec.Tool, mocks ...*spec.ToolMock) Tool {
	return &mocked{info: Describe(t.Common(), t.Arguments()), mocks: mocks}
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
	info  Info
	mocks []*spec.ToolMock
}

// Info returns the description of the tool in whose place it is.
func (m *mocked) Info() Info { return m.info }

// Call returns a copy of the result.
func (m *mocked) Call(_ context.Context, args map[string]any) (any, error) {
	if _, err := m.info.ValidateArgs(args); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(m.mocks, func(d *spec.ToolMock) bool { return has(args, d.Arguments) })
	if i < 0 {
		return nil, &FailedError{Tool: m.info.ID, Message: "no mock of the tool has these arguments"}
	}
	if m.mocks[i].Error != "" {
		return nil, &FailedError{Tool: m.info.ID, Message: m.mocks[i].Error}
	}
	text, err := json.Marshal(m.mocks[i].Result)
	if err != nil {
		return nil, &FailedError{Tool: m.info.ID, Message: "the mock's result cannot be encoded as JSON"}
	}
	var result any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&result)
	return result, err
}

// has reports whether arguments have the values that are wanted, as JSON.
func has(args, want map[string]any) bool {
	for name, v := range want {
		given, ok := args[name]
		if !ok || !reflect.DeepEqual(plain(given), plain(v)) {
			return false
		}
	}
	return true
}

// plain returns a value in the types that it has after a transfer as JSON; nil if it has none.
func plain(v any) (decoded any) {
	if text, err := json.Marshal(v); err == nil && json.Unmarshal(text, &decoded) == nil {
		return decoded
	}
	return nil
}
