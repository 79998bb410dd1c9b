package chatui_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/chatui"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	messages "github.com/qtype-dev/qtype/spec/chat"
)

// commentingModel comments before it answers.
type commentingModel struct{ info model.Info }

func (m commentingModel) Info() model.Info { return m.info }

func (m commentingModel) Generate(context.Context, model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		answer := messages.Text(messages.Assistant, "Done.")
		_ = yield(model.Event{Commentary: "I "}, nil) && yield(model.Event{Commentary: "look\n\x1b[2Jit up."}, nil) && yield(model.Event{Text: "Done."}, nil) &&
			yield(model.Event{Response: &model.Response{Message: answer, Finish: "stop"}}, nil)
	}
}

// TestChat_Commentary: commentary is a separate line and not part of the answer.
func TestChat_Commentary(t *testing.T) {
	mocks := runtime.Mocks{Model: func(m *spec.Model) (model.Chat, error) { return commentingModel{model.Describe(m)}, nil }}
	app, err := qtype.Open(t.Context(), testkit.WriteFile(t, "app.qtype.yaml", document), qtype.WithEphemeral(), qtype.WithMocks(mocks))
	testkit.Must(t, err)
	defer app.Close(context.Background())
	target, err := chatui.NewTarget(app.Spec(), "talk", `{"tone": "calm"}`)
	testkit.Must(t, err)
	var out, errs strings.Builder
	c := &chatui.Chat{Streams: &terminal.Streams{Out: &out, Err: &errs, OutTerminal: true, Width: 80},
		Lines: terminal.NewLines(strings.NewReader("hello\n")), App: app, Target: target, Session: "me"}
	defer c.Lines.Close()
	testkit.Must(t, c.Run(t.Context()))
	if out.String() != "Done.\n" || strings.Count(errs.String(), "  · I look") != 1 || strings.Contains(errs.String(), "\x1b[2J") {
		t.Errorf("got %q and %q", out.String(), errs.String())
	}
}
