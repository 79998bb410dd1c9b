package wire

import "strings"

// Finish returns why an answer ended in the terms of model.Response, and the provider's
// own word for it if the answer is incomplete; calls is the number of its tool calls.
// Gateways pass on the words of the models behind them, so all clients know all words.
func Finish(word string, calls int) (finish, reason string) {
	switch lower := strings.ToLower(word); lower {
	case "length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded":
		return "length", word
	case "content_filter", "content_filtered", "refusal", "safety", "recitation", "blocklist", "prohibited_content",
		"spii", "image_safety", "language", "guardrail_intervened":
		return "content_filter", word
	case "", "stop", "end_turn", "function_call", "tool_use", "tool_calls", "tool_call", "stop_sequence", "pause_turn", "eos", "load", "unload", "complete":
		if calls > 0 {
			return "tool_calls", ""
		}
		return "stop", ""
	default:
		return lower, "" // such as malformed_function_call
	}
}
