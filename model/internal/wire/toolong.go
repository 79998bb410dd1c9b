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
	"context_length_exceeded":   true, // OpenAI, llama-cpp-python and others
	"exceed_context_size_error": true, // the server of llama.cpp
	"3051":                      true, // Mistral
}

// tooLongPhrases are parts of the messages of providers whose code is that of any
// invalid request, in lower case.
var tooLongPhrases = []string{
	"maximum context length",                       // vLLM, Mistral, OpenAI
	"prompt is too long",                           // Anthropic
	"exceed context limit",                         // Anthropic: input and max_tokens
	"exceeds the maximum number of tokens",         // Google
	"exceeds the context length",                   // Ollama
	"exceeds maximum context length",               // Ollama
	"exceeds the available context",                // llama.cpp, Ollama's runner
	"exceed context window",                        // llama-cpp-python, without its server
	"exceeds the context window",                   // OpenAI, api responses
	"reduce the length of the messages",            // Groq
	"input is too long for requested model",        // Bedrock
	"`inputs` tokens + `max_new_tokens` must be <", // Text Generation Inference
}

// sizePatterns are the forms in which messages report the requested tokens and the limit.
type sizePatterns struct{ requested, limit []*regexp.Regexp }

var sizes = sync.OnceValue(func() sizePatterns {
	return sizePatterns{
		requested: []*regexp.Regexp{
			regexp.MustCompile(`\((\d+) in the messages`),           // OpenAI, llama-cpp-python, vLLM
			regexp.MustCompile(`messages resulted in (\d+) tokens`), // OpenAI
			regexp.MustCompile(`too long: (\d+) tokens`),            // Anthropic
			regexp.MustCompile(`context limit: (\d+) \+`),           // Anthropic
			regexp.MustCompile(`token count \((\d+)\)`),             // Google
			regexp.MustCompile(`[Pp]rompt contains (\d+) tokens`),   // Mistral
			regexp.MustCompile(`[Rr]equested tokens \((\d+)\)`),     // llama-cpp-python
			regexp.MustCompile(`request \((\d+) tokens\) exceeds`),  // llama.cpp
		},
		limit: []*regexp.Regexp{
			regexp.MustCompile(`maximum context length is (\d+) tokens`), // OpenAI, llama-cpp-python, vLLM
			regexp.MustCompile(`tokens > (\d+) maximum`),                 // Anthropic
			regexp.MustCompile(`context limit: \d+ \+ \d+ > (\d+)`),      // Anthropic
			regexp.MustCompile(`tokens allowed \((\d+)\)`),               // Google
			regexp.MustCompile(`with (\d+) maximum context length`),      // Mistral
			regexp.MustCompile(`context window of (\d+)`),                // llama-cpp-python
			regexp.MustCompile(`context size \((\d+) tokens\)`),          // llama.cpp
		},
	}
})

// tooLong reports whether an error means that the request exceeds the context window,
// with the sizes that its message has.
func tooLong(status int, code, message string) (found bool, requested, limit int) {
	lower := strings.ToLower(message)
	found = tooLongCodes[code]
	for _, phrase := range tooLongPhrases {
		found = found || strings.Contains(lower, phrase)
	}
	if status == http.StatusTooManyRequests || status == http.StatusUnauthorized || !found {
		return false, 0, 0
	}
	return true, firstNumber(sizes().requested, message), firstNumber(sizes().limit, message)
}

// firstNumber returns the number that one of the expressions finds, 0 for none.
func firstNumber(all []*regexp.Regexp, text string) int {
	for _, r := range all {
		if m := r.FindStringSubmatch(text); m != nil {
			n, _ := strconv.Atoi(m[1]) // a number too large is none
			return n
		}
	}
	return 0
}
