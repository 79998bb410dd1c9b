package wire

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// tooLongCodes are the codes and types of errors for requests above the context window.
var tooLongCodes = map[string]bool{
	"context_length_exceeded":    true, // OpenAI, llama-cpp-python and others
	"exceed_context_size_error":  true, // the server of llama.cpp
	"3051":                       true, // Mistral
	"request_too_large":          true, // Anthropic
	"1261":                       true, // Z.ai
	"tokens_limit_reached":       true, // GitHub Models
	"ContextWindowExceededError": true, // LiteLLM
}

// tooLongWording is what a server writes about a request above the context window, if its
// code is the code of any invalid request. All of it is in lower case.
type tooLongWording struct {
	words            string         // a part of the message
	requested, limit *regexp.Regexp // find the sizes in tokens; nil where the message has none
}

var tooLongWordings = sync.OnceValue(func() []tooLongWording {
	var list []tooLongWording
	for _, row := range [][3]string{
		// OpenAI, vLLM, SGLang, llama-cpp-python, OpenRouter, Mistral, Ollama, Fireworks
		{`maximum context length`, `\((\d+) (?:in the messages|of text input|in your prompt)(?:, (\d+) (?:in the functions|of tool input))?|resulted in (\d+) tokens|: (\d+) tokens from the input|contains (?:at least )?(\d+) (?:input )?tokens|too long: (\d+)`,
			`maximum context length(?: is| of|:) (\d+)|with (\d+) maximum context length`},
		{`exceeds the context window`},                                                                  // OpenAI, api responses
		{`exceed the configured limit`, `resulted in (\d+)`, `limit of (\d+)`},                          // OpenAI
		{`prompt is too long`, `too long: (\d+) tokens`, `tokens > (\d+) maximum`},                      // Anthropic
		{`exceed context limit`, `context limit: (\d+) \+`, `context limit: \d+ \+ \d+ > (\d+)`},        // Anthropic: input and max_tokens
		{`exceeds the maximum number of tokens`, `token count \((\d+)\)`, `tokens allowed \((\d+)\)`},   // Google
		{`exceeds the available context`, `request \((\d+) tokens\)`, `context size \((\d+) tokens\)`},  // llama.cpp, Ollama's runner
		{`exceed context window`, `requested tokens \((\d+)\)`, `context window of (\d+)`},              // llama-cpp-python, without its server
		{`exceeds the context length`},                                                                  // Ollama
		{`reduce the length of the messages`, `current length is (\d+)`, `limit is (\d+)`},              // Groq, Cerebras
		{`input is too long for requested model`},                                                       // Bedrock
		{`number of input tokens exceeds`},                                                              // Bedrock, Nova
		{"`inputs` tokens + `max_new_tokens` must be <", `given: (\d+)`, `must be <= (\d+)`},            // Text Generation Inference, Together
		{"`inputs` must have less than", `given: (\d+)`, `less than (\d+) tokens`},                      // Text Generation Inference
		{`maximum prompt length`, `contains (\d+) tokens`, `length is (\d+)`},                           // xAI
		{`longer than the model's context length`, `input \((\d+) tokens\)`, `length \((\d+) tokens\)`}, // SGLang
		{`longer than the maximum model length`, `length (\d+)\)`, `model length of (\d+)`},             // vLLM
		{`context length is only`, `passed (\d+) input tokens`, `length is only (\d+)`},                 // vLLM
		{`context length of only`, `first (\d+) tokens`, `length of only (\d+)`},                        // LM Studio
		{`greater than the context length`},                                                             // LM Studio
		{`exceeded model token limit`, ``, `limit: (\d+)`},                                              // Kimi
		{`prompt token count of`, `count of (\d+)`, `limit of (\d+)`},                                   // Copilot
		{`context window exceeds limit`},                                                                // MiniMax
		{`too many tokens`, `received (\d+)`, `cannot exceed (\d+)`},                                    // Cohere
		{`prompt exceeds max length`},                                                                   // Z.ai
		{`range of input length should be`, ``, `\[\d+, (\d+)\]`},                                       // Qwen
		{`exceeds maximum input length`, `length \((\d+)\) exceeds`, `input length \((\d+)\)`},          // TensorRT-LLM
		{`prompt too long`}, // Ollama
		{`input too long:`, `long: (\d+) input tokens`, `limit is (\d+)`}, // Bedrock
		{`expected maxlength`}, // Bedrock, in characters
		{`model supports up to`, `count is (\d+)`, `supports up to (\d+)`}, // Vertex AI
		{`request body too large`, ``, `max size: (\d+) tokens`},           // GitHub Models
		{`exceed max message tokens`},                                      // Volcengine
		{`total message size`},                                             // Kimi, in bytes
		{`content': string too long`},                                      // OpenAI, in characters
		{`exceeds model context window`},                                   // gateways, as are those that follow
		{`context length exceeded`},
		{`context_length_exceeded`},
		{`context window exceeded`},
		{`token limit exceeded`},
	} {
		w := tooLongWording{words: row[0]}
		if row[1] != "" {
			w.requested = regexp.MustCompile(row[1])
		}
		if row[2] != "" {
			w.limit = regexp.MustCompile(row[2])
		}
		list = append(list, w)
	}
	return list
})

// tooLong reports whether an error means that the request exceeds the context window,
// with the sizes that its message has.
func tooLong(status int, code, message string) (found bool, requested, limit int) {
	if status == http.StatusTooManyRequests || status == http.StatusUnauthorized {
		return false, 0, 0
	}
	found = tooLongCodes[code] || status == http.StatusRequestEntityTooLarge
	message = strings.ToLower(message)
	for _, w := range tooLongWordings() {
		if strings.Contains(message, w.words) {
			return true, number(w.requested, message), number(w.limit, message)
		}
	}
	return found, 0, 0
}

// number returns the sum of the numbers that the groups of an expression find, 0 for none.
func number(r *regexp.Regexp, text string) (sum int) {
	if r == nil {
		return 0
	}
	for _, group := range r.FindStringSubmatch(text) {
		if n, err := strconv.Atoi(group); err == nil {
			sum += n
		}
	}
	return sum
}
