package wire

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/model"
)

// The ends of an answer, values of model.Response.Finish. Answers with the last two become
// errors.
const (
	finishStop   = "stop"           // complete
	finishCalls  = "tool_calls"     // complete, with calls
	finishLength = "length"         // cut off at a limit of tokens
	finishFilter = "content_filter" // withheld, or a part of it
	finishPause  = "pause"          // the provider continues when it gets the answer back
	finishRetry  = "retry"          // the model or the server failed; another call may succeed
	finishError  = "error"          // the same call would fail again, or the word is unknown
)

// finishWords are the words of providers, in lower case, by their meaning. Gateways pass on
// the words of the models that they call, so all clients know all words.
var finishWords = sync.OnceValue(func() map[string]string {
	meanings := map[string]string{}
	for meaning, words := range map[string]string{
		finishStop: `stop end_turn stop_sequence eos eos_token end_of_text complete completed finished done load unload
			function_call tool_use tool_call tool_calls finish_reason_unspecified`,
		finishLength: `length max_tokens max_output_tokens model_length model_context_window_exceeded error_limit token_limit`,
		finishFilter: `content_filter content_filtered refusal safety recitation blocklist prohibited_content spii language
			image_safety image_prohibited_content image_recitation model_armor jailbreak guardrail_intervened sensitive error_toxic`,
		finishPause: `pause_turn continuation compaction`,
		finishRetry: `error retry network_error timeout abort aborted cancelled canceled insufficient_system_resource other
			malformed_function_call malformed_response malformed_model_output malformed_tool_use unexpected_tool_call no_image image_other`,
		finishError: `missing_thought_signature too_many_tool_calls escalation repetition repetition_truncation user_cancel`,
	} {
		for _, word := range strings.Fields(words) {
			meanings[word] = meaning
		}
	}
	return meanings
})

// Finish returns why an answer ended in the terms of model.Response, and the provider's own
// word for it if the answer is incomplete; calls is the number of its tool calls. A word
// that is not known is never a complete end.
func Finish(word string, calls int) (finish, reason string) {
	meaning := cmp.Or(finishWords()[strings.ToLower(word)], finishError)
	switch {
	case word != "" && meaning != finishStop:
		return meaning, word
	case calls > 0:
		return finishCalls, ""
	}
	return finishStop, ""
}

// Unfinished returns the error of an answer that ended by a failure of the model or the
// server, nil for others.
func Unfinished(info model.Info, r *model.Response) error {
	if r.Finish != finishRetry && r.Finish != finishError {
		return nil
	}
	return &model.Error{Model: info.ID, Endpoint: info.Endpoint, Code: r.Reason, Temporary: r.Finish == finishRetry,
		Message: fmt.Sprintf("the answer ended before it was complete (finish reason %s)", httpx.SingleLine(r.Reason, maxMessage))}
}
