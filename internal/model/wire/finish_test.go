package wire_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/model/wire"
)

func TestFinish(t *testing.T) {
	for _, tt := range []struct {
		word   string
		calls  int
		finish string
		reason string
	}{
		{"length", 0, "length", "length"}, {"max_tokens", 0, "length", "max_tokens"}, {"MAX_TOKENS", 1, "length", "MAX_TOKENS"},
		{"model_length", 0, "length", "model_length"}, {"model_context_window_exceeded", 0, "length", "model_context_window_exceeded"},
		{"content_filter", 0, "content_filter", "content_filter"}, {"SAFETY", 0, "content_filter", "SAFETY"}, {"refusal", 0, "content_filter", "refusal"},
		{"guardrail_intervened", 0, "content_filter", "guardrail_intervened"}, {"PROHIBITED_CONTENT", 0, "content_filter", "PROHIBITED_CONTENT"},
		{"", 0, "stop", ""}, {"STOP", 2, "tool_calls", ""}, {"end_turn", 0, "stop", ""}, {"tool_use", 1, "tool_calls", ""},
		{"function_call", 1, "tool_calls", ""}, {"MALFORMED_FUNCTION_CALL", 0, "retry", "MALFORMED_FUNCTION_CALL"},
		{"pause_turn", 0, "pause", "pause_turn"}, {"CONTINUATION", 0, "pause", "CONTINUATION"}, {"sensitive", 0, "content_filter", "sensitive"},
		{"MODEL_ARMOR", 0, "content_filter", "MODEL_ARMOR"}, {"network_error", 1, "retry", "network_error"}, {"malformed_tool_use", 0, "retry", "malformed_tool_use"},
		{"MISSING_THOUGHT_SIGNATURE", 0, "error", "MISSING_THOUGHT_SIGNATURE"}, {"a new word", 1, "error", "a new word"}, {"eos_token", 0, "stop", ""},
	} {
		if finish, reason := wire.Finish(tt.word, tt.calls); finish != tt.finish || reason != tt.reason {
			t.Errorf("%q with %d calls: %q, %q", tt.word, tt.calls, finish, reason)
		}
	}
}
