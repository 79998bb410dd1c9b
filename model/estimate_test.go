package model_test

import (
	"context"
	"iter"
	"testing"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// reporter is a model that reports a usage.
type reporter struct{ usage model.Usage }

func (r reporter) Info() model.Info { return model.Info{ID: "m", Encoding: "o200k_base"} }

func (r reporter) Generate(context.Context, model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		yield(model.Event{Response: &model.Response{Message: chat.Text(chat.Assistant, "fine words"), Finish: "stop", Usage: r.usage}}, nil)
	}
}

// TestWithEstimates: only an answer without usage gets an estimate, which is marked.
func TestWithEstimates(t *testing.T) {
	for reported, want := range map[model.Usage]model.Usage{
		{}:                    {Input: 3, Output: 2, Estimated: true},
		{Input: 9, Output: 1}: {Input: 9, Output: 1},
		{Output: 7}:           {Output: 7},
	} {
		m := model.WithEstimates(reporter{reported})
		got, err := model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "one two three")}}, nil)
		if err != nil || got.Usage != want {
			t.Errorf("%+v: got %+v, %v", reported, got.Usage, err)
		}
	}
}
