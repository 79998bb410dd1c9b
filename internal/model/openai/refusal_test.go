package openai_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/openai"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Reasoning that the server refuses is left out: of earlier turns first, then all of it. It stays out.
func TestResponses_RefusedReasoning(t *testing.T) {
	for name, refusal := range map[string]struct {
		status int
		body   string
	}{
		"code":       {400, `{"error":{"message":"No.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}`},
		"words":      {400, `{"error":{"message":"The encrypted content for item rs_1 could not be verified.","type":"invalid_request_error"}}`},
		"not stored": {404, `{"error":{"message":"Item with id 'rs_1' not found. Items are not persisted when store is false.","type":"invalid_request_error"}}`},
	} {
		refuse, done := modeltest.Respond(refusal.status, "application/json", refusal.body), output(false, strings.Replace(commentary, "commentary", "final_answer", 1))
		v := converse(t, openai.NewResponses, known(t, "openai", "gpt-6.1-sol"), nil,
			output(false, sealed, searched, commentary, called), output(false, sealedToo, called), refuse, done, refuse, done, refuse, modeltest.Respond(500, "application/json", `{"error":{"message":"Busy."}}`))
		list := []chat.Message{chat.Text(chat.User, "Where?")}
		for range 2 {
			answer := v.say(t, false, list...).Message
			list = slices.Concat(list, []chat.Message{answer}, results(answer))
			if len(list) == 3 {
				list = append(list, chat.Text(chat.User, "And?"))
			}
		}
		got := v.say(t, false, list...)
		sent := modeltest.JSON(v.sent(3, "input"))
		if !slices.Equal(got.Dropped, []string{"the reasoning of 1 earlier answer, which the provider refused"}) || strings.Contains(sent, "rs_1") || strings.Contains(sent, "ws_1") || !strings.Contains(sent, "rs_2") || !strings.Contains(sent, "I look.") {
			t.Errorf("%s: dropped %q, sent %s", name, got.Dropped, sent)
		}
		got = v.say(t, false, list...)
		again, last := modeltest.JSON(v.sent(4, "input")), modeltest.JSON(v.sent(5, "input"))
		if len(got.Dropped) != 1 || strings.Contains(again, "rs_1") || !strings.Contains(again, "rs_2") || strings.Contains(last, "rs_") || !strings.Contains(last, "function_call_output") {
			t.Errorf("%s: dropped %q, sent %s, then %s", name, got.Dropped, again, last)
		}
		_, err := model.Call(t.Context(), v.model, model.Request{Messages: list}, nil) // a fallback may answer, and report it
		if failure, ok := errors.AsType[*model.Error](err); !ok || len(failure.Dropped) != 1 {
			t.Errorf("%s: failed with %#v", name, err)
		}
	}
}

// Another refusal is not taken for one of reasoning.
func TestResponses_OtherRefusal(t *testing.T) {
	v := converse(t, openai.NewResponses, known(t, "openai", "gpt-6.1-sol"), nil, output(false, sealed, called),
		modeltest.Respond(400, "application/json", `{"error":{"message":"Unknown parameter: 'foo'.","code":"unknown_parameter"}}`))
	question := chat.Text(chat.User, "Where?")
	answer := v.say(t, false, question).Message
	_, err := model.Call(t.Context(), v.model, model.Request{Messages: slices.Concat([]chat.Message{question, answer}, results(answer))}, nil)
	if err == nil || !strings.Contains(err.Error(), "Unknown parameter") {
		t.Errorf("got %v", err)
	}
}
