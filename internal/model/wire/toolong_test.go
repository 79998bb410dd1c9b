package wire_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/anthropic"
	"github.com/qtype-dev/qtype/internal/model/googleai"
	"github.com/qtype-dev/qtype/internal/model/ollama"
	"github.com/qtype-dev/qtype/internal/model/openai"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// tooLongBodies are errors in the wire forms of providers, with the sizes that they report.
var tooLongBodies = map[string]struct {
	status           int
	body             string
	requested, limit int
}{
	"openai":           {400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, 9001, 8192},
	"llama-cpp-python": {400, `{"error":{"message":"This model's maximum context length is 512 tokens. However, you requested 700 tokens (690 in the messages, 10 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, 690, 512},
	"llama.cpp":        {400, `{"error":{"code":400,"message":"request (700 tokens) exceeds the available context size (512 tokens), try increasing it","type":"exceed_context_size_error"}}`, 700, 512},
	"anthropic":        {400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`, 208310, 200000},
	"anthropic output": {400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 199000 + 8192 > 200000, decrease input length or ` + "`max_tokens`" + ` and try again"}}`, 199000, 200000},
	"google":           {400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, 1200000, 1048576},
	"ollama":           {400, `{"error":"the input length exceeds the context length"}`, 0, 0},
	"mistral":          {400, `{"object":"error","message":"Prompt contains 40000 tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","param":null,"code":"3051"}`, 40000, 32768},
}

// tooLongMessages are messages of servers with the code of any invalid request, with the
// sizes that they report.
var tooLongMessages = map[string][2]int{
	"This model's maximum prompt length is 100 but the request contains 250 tokens.":                                                                                                                                                           {250, 100},
	"The input (250 tokens) is longer than the model's context length (100 tokens).":                                                                                                                                                           {250, 100},
	"Requested token count exceeds the model's maximum context length of 100 tokens. You requested a total of 250 tokens: 200 tokens from the input messages and 50 tokens for the completion.":                                                {200, 100},
	"The decoder prompt (length 250) is longer than the maximum model length of 100. Make sure that `max_model_len` is no smaller than the number of text tokens.":                                                                             {250, 100},
	"You passed 250 input tokens and requested 0 output tokens. However, the model's context length is only 100 tokens, resulting in a maximum input length of 100 tokens. Please reduce the length of the input prompt.":                      {250, 100},
	"Trying to keep the first 250 tokens when context the overflows. However, the model is loaded with context length of only 100 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input": {250, 100},
	"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input":                                                                  {0, 0},
	"Invalid request: Your request exceeded model token limit: 100":                                                                                                                                                                            {0, 100},
	"prompt token count of 250 exceeds the limit of 100":                                      {250, 100},
	"invalid params, context window exceeds limit":                                            {0, 0},
	"too many tokens: total number of tokens in the prompt cannot exceed 100 - received 250.": {250, 100},
	"Prompt exceeds max length":                                                               {0, 0},
	"This endpoint's maximum context length is 100 tokens. However, you requested about 250 tokens (200 of text input, 50 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.": {200, 100},
	"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 100]":                                                                                               {0, 100},
	"Input tokens exceed the configured limit of 100 tokens. Your messages resulted in 250 tokens. Please reduce the length of the messages.":                                           {250, 100},
	"Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.":                                                                       {0, 0},
	"Prompt length (250) exceeds maximum input length (100). Set log level to info and check TRTGptModel logs for how maximum input length is set":                                      {250, 100},
	"This model's maximum context length is 100 tokens. However, you requested 0 output tokens and your prompt contains at least 250 input tokens, for a total of at least 250 tokens.": {250, 100},
	"This endpoint's maximum context length is 100 tokens. However, you requested about 350 tokens (150 of text input, 100 of tool input, 100 in the output).":                          {250, 100},
	"This model's maximum context length is 100 tokens. However, you requested 260 tokens (200 in the messages, 50 in the functions, 10 in the completion).":                            {250, 100},
	"This model's maximum context length is 100 tokens. However, your messages resulted in 250 tokens (200 in the messages, 50 in the functions).":                                      {250, 100},
	"This model's maximum context length is 100 tokens, however you requested 255 tokens (250 in your prompt; 5 for the completion).":                                                   {250, 100},
	"The prompt is too long: 250, model maximum context length: 100":                                                                                                                    {250, 100},
	"Please reduce the length of the messages or completion. Current length is 250 while limit is 100":                                                                                  {250, 100},
	"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 100. Given: 250 `inputs` tokens and 10 `max_new_tokens`":                                                     {250, 100},
	"prompt too long; exceeded max context length by 150 tokens":                                                                                                                        {0, 0},
	"Input too long: 250 input tokens, limit is 100":                                                                                                                                    {250, 100},
	"Malformed input request: expected maxLength: 100, actual: 250, please reformat your input and try again.":                                                                          {0, 0},
	"Unable to submit request because the input token count is 250 but the model supports up to 100.":                                                                                   {250, 100},
	"Request body too large for m model. Max size: 100 tokens.":                                                                                                                         {0, 100},
	"Total tokens of image and text exceed max message tokens":                                                                                                                          {0, 0},
	"total message size 250 exceeds limit 100":                                                                                                                                          {0, 0},
	"Invalid 'messages[1].content': string too long. Expected a string with maximum length 100, but got a string with length 250 instead.":                                              {0, 0},
	"LLM request rejected: the request exceeds model context window":                                                                                                                    {0, 0},
	"litellm.BadRequestError: {\"code\": \"context_length_exceeded\"}":                                                                                                                  {0, 0},
	"Your input exceeds the context window of this model. Please adjust your input and try again.":                                                                                      {0, 0},
	"Please reduce the length of the messages or completion.":                                                                                                                           {0, 0},
	"Input is too long for requested model.":                                                                                                                                            {0, 0},
	"Requested tokens (250) exceed context window of 100":                                                                                                                               {250, 100},
	"Input validation error: `inputs` must have less than 100 tokens. Given: 250":                                                                                                       {250, 100},
}

// otherBodies are errors that are not about the context window.
var otherBodies = map[string]struct {
	status int
	body   string
}{
	"rate limit": {429, `{"error":{"message":"Rate limit reached for tokens per minute: maximum context length is 5 tokens","type":"tokens","code":"rate_limit_exceeded"}}`},
	"login":      {401, `{"error":{"message":"prompt is too long"}}`},
	"user":       {400, `{"error":{"message":"Invalid 'user': string too long. Expected a string with maximum length 64, but got a string with length 90 instead.","type":"invalid_request_error","param":"user","code":"string_above_max_length"}}`},
	"parameter":  {400, `{"error":{"message":"max_tokens must be at least 1","type":"invalid_request_error"}}`},
}

// clients are the clients of the providers.
var clients = map[string]func(wire.Config) (model.Chat, error){
	"openai":    func(c wire.Config) (model.Chat, error) { return openai.New(c) },
	"mistral":   func(c wire.Config) (model.Chat, error) { return openai.NewMistral(c) },
	"anthropic": func(c wire.Config) (model.Chat, error) { return anthropic.New(anthropic.Config{Config: c}) },
	"google":    func(c wire.Config) (model.Chat, error) { return googleai.New(c) },
	"ollama":    func(c wire.Config) (model.Chat, error) { return ollama.New(ollama.Config{Config: c}) },
}

// rejectedWith returns the error of a call of a client whose server rejects it.
func rejectedWith(t *testing.T, client string, status int, body string) *model.Error {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	m, err := clients[client](wire.Config{Info: model.Info{ID: "m", Name: "m"}, BaseURL: server.URL, Key: "k", HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "hello")}}, nil)
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("%s: got %v", client, err)
	}
	return e
}

func TestTooLong(t *testing.T) {
	for name, c := range tooLongBodies {
		client, _, _ := strings.Cut(name, " ")
		if clients[client] == nil {
			client = "openai" // a server with OpenAI's protocol
		}
		e := rejectedWith(t, client, c.status, c.body)
		if !e.TooLong || e.Temporary || e.Requested != c.requested || e.Limit != c.limit {
			t.Errorf("%s: too long %v, requested %d, limit %d: %v", name, e.TooLong, e.Requested, e.Limit, e)
		}
	}
	for message, sizes := range tooLongMessages {
		body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error"}})
		e := rejectedWith(t, "openai", 400, string(body))
		if !e.TooLong || e.Requested != sizes[0] || e.Limit != sizes[1] {
			t.Errorf("too long %v, requested %d, limit %d: %v", e.TooLong, e.Requested, e.Limit, e)
		}
	}
	if e := rejectedWith(t, "openai", 413, "<html>Request Entity Too Large</html>"); !e.TooLong {
		t.Errorf("413: %+v", e)
	}
	for name, c := range otherBodies {
		if e := rejectedWith(t, "openai", c.status, c.body); e.TooLong || e.Limit != 0 {
			t.Errorf("%s: %+v", name, e)
		}
	}
}
