// Package modelparams decides which inference_params of a model a request can have. The
// clients of models and the validator call it, so that a run refuses what validation reports.
package modelparams

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// Protocol is what a client sends: it sets some parameters itself.
type Protocol int

// The protocols of the clients.
const (
	ChatCompletions Protocol = iota + 1 // OpenAI's chat completions
	Responses                           // OpenAI's responses
	Embeddings                          // OpenAI's embeddings
	Messages                            // Anthropic's messages
	VertexMessages                      // Anthropic's messages on Vertex AI
	Gemini                              // Google's generateContent
	VertexPredict                       // embeddings of Vertex AI
	Converse                            // Bedrock's Converse
	Titan                               // Amazon's embeddings on Bedrock
	CohereEmbed                         // Cohere's embeddings on Bedrock
	Ollama                              // Ollama's chat
	Bridged                             // a chat that langchaingo calls
	BridgedMistral                      // Mistral's chat, which langchaingo calls
	Local                               // a model in this process
)

// Reserved lists the parameters that a client of the protocol sets itself.
func (p Protocol) Reserved() []string {
	switch p {
	case ChatCompletions:
		return []string{"messages", "model", "n", "stream", "tools"}
	case Responses:
		return []string{"background", "conversation", "input", "instructions", "model", "previous_response_id", "stream", "tools"}
	case Embeddings:
		return []string{"input", "model"}
	case Messages:
		return []string{"messages", "model", "stream", "system", "tools"}
	case VertexMessages:
		return []string{"anthropic_version", "messages", "model", "stream", "system", "tools"}
	case Gemini:
		return []string{"contents", "model", "stream", "systemInstruction", "system_instruction", "tools", "n", "candidateCount", "candidate_count"}
	case VertexPredict:
		return []string{"instances", "content"}
	case Converse:
		return []string{"messages", "model", "modelId", "stream", "system", "tools", "toolConfig", "tool_config"}
	case Titan:
		return []string{"inputText"}
	case CohereEmbed:
		return []string{"texts"}
	case Ollama:
		return []string{"messages", "model", "stream", "tools"}
	}
	return nil
}

// maps lists the parameters whose values are merged with others into one object.
func (p Protocol) maps() []string {
	switch p {
	case Gemini:
		return []string{"generationConfig", "generation_config"}
	case Converse:
		return []string{"inferenceConfig", "inference_config", "additionalModelRequestFields", "additional_model_request_fields"}
	case Ollama:
		return []string{"options"}
	}
	return nil
}

// Error is a parameter that a request cannot have.
type Error struct {
	Name    string
	Problem string // contains the name
	OfValue bool   // whether another value is possible
}

// Error returns the problem.
func (e *Error) Error() string { return e.Problem }

// Encode encodes the parameters of a model as JSON, by their names.
func (p Protocol) Encode(params map[string]any) (map[string]json.RawMessage, error) {
	encoded := make(map[string]json.RawMessage, len(params))
	for _, name := range slices.Sorted(maps.Keys(params)) { // sorted, so that the error is always the same
		if problem := p.refusal(name); problem != "" {
			return nil, &Error{Name: name, Problem: problem}
		}
		raw, err := json.Marshal(params[name])
		switch {
		case err != nil:
			return nil, &Error{name, fmt.Sprintf("inference_params: %s cannot be encoded as JSON", name), true}
		case slices.Contains(p.maps(), name) && !strings.HasPrefix(string(raw), "{") && string(raw) != "null":
			return nil, &Error{name, fmt.Sprintf("inference_params: %s must be a map", name), true}
		}
		if wrong := withoutNumber(name, params[name]); wrong != "" {
			return nil, &Error{name, fmt.Sprintf("inference_params: %s must be a number", wrong), true}
		}
		encoded[name] = raw
	}
	return encoded, nil
}

// withoutNumber returns the path of a parameter that must be a number, and is a text without one, a truth value,
// a list or a map; empty if there is none. A text with a number is left to the server.
func withoutNumber(path string, value any) string {
	name := path[strings.LastIndexByte(path, '.')+1:]
	switch v := value.(type) {
	case map[string]any:
		if name == "metadata" { // whose names are the user's
			return ""
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if wrong := withoutNumber(path+"."+key, v[key]); wrong != "" {
				return wrong
			}
		}
	case string:
		if _, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err != nil && IsNumber(name) && !isDuration(name) {
			return path
		}
	case bool:
		if IsNumber(name) && !IsBoolean(name) {
			return path
		}
	case []any:
		if IsNumber(name) {
			return path
		}
	}
	return ""
}

// isDuration reports whether a parameter is a number of seconds, or a text such as 5m.
func isDuration(name string) bool { return snake(name) == "keep_alive" }

// refusal returns why no request can have a parameter, with any value; empty if it can.
func (p Protocol) refusal(name string) string {
	bridged := []string{"temperature", "max_tokens", "random_seed"}
	switch {
	case slices.Contains(p.Reserved(), name):
		return fmt.Sprintf("inference_params must not contain %q, which qtype sets itself", name)
	case p == BridgedMistral && !slices.Contains(bridged, name):
		return fmt.Sprintf("langchaingo:mistral cannot send the inference parameter %s, only %s", name, strings.Join(bridged, ", "))
	case p == Local:
		return "provider hugot has no inference_params; remove " + name
	}
	return ""
}

// Check returns why the client of a model refuses its inference_params, an *Error, nil if it
// does not.
func Check(m spec.ModelEntity) error {
	_, embeds := m.(*spec.EmbeddingModel)
	p := protocolOf(m.Base(), embeds)
	if p == 0 {
		return nil
	}
	params, err := Of(m.Base())
	if err == nil {
		_, err = p.Encode(params)
	}
	return err
}

// MarksCache reports whether requests to a model mark what the provider caches.
func MarksCache(m spec.ModelEntity) bool {
	_, embeds := m.(*spec.EmbeddingModel)
	p := protocolOf(m.Base(), embeds)
	return p == Messages || p == VertexMessages || p == Converse
}

// protocolOf returns the protocol by which a model is called, 0 for an unknown one.
func protocolOf(m *spec.Model, embeds bool) Protocol {
	row, known := m.ProviderRow()
	switch {
	case m.Provider == "langchaingo:mistral":
		return BridgedMistral
	case known && row.Client == spec.BridgeClient:
		return Bridged
	case known && row.Client == spec.LocalClient:
		return Local
	case !known || row.Client != spec.NativeClient:
		return 0
	}
	switch m.Provider {
	case "anthropic":
		return Messages
	case "aws-bedrock":
		return either(embeds, bedrockEmbeddings(m.Name()), Converse)
	case "gcp-vertex":
		return either(embeds, VertexPredict, VertexChat(m.Name()))
	case "google-ai":
		return either(embeds, Embeddings, Gemini)
	case "ollama":
		return either(embeds, Embeddings, Ollama)
	}
	return either(embeds, Embeddings, either(m.UsesResponses(), Responses, ChatCompletions))
}

func either(first bool, a, b Protocol) Protocol {
	if first {
		return a
	}
	return b
}

// VertexChat returns the protocol of a chat model of Vertex AI.
func VertexChat(name string) Protocol {
	return either(strings.HasPrefix(name[strings.LastIndexByte(name, '/')+1:], "claude"), VertexMessages, Gemini)
}

func bedrockEmbeddings(name string) Protocol {
	return either(strings.Contains(name, "cohere.embed"), CohereEmbed, Titan)
}

// IsNumber reports whether providers take a number for a parameter of this name, in snake or camel case.
func IsNumber(name string) bool {
	return slices.Contains([]string{
		"temperature", "top_p", "top_k", "min_p", "typical_p", "top_a", "tfs_z", "n", "seed", "random_seed",
		"max_tokens", "max_completion_tokens", "max_output_tokens", "min_tokens", "max_tool_calls", "budget_tokens", "thinking_budget",
		"presence_penalty", "frequency_penalty", "repetition_penalty", "repeat_penalty", "repeat_last_n", "length_penalty",
		"logprobs", "top_logprobs", "best_of", "candidate_count", "dimensions", "output_dimensionality",
		"num_predict", "num_ctx", "num_keep", "num_batch", "num_gpu", "num_thread", "mirostat", "mirostat_eta", "mirostat_tau", "keep_alive",
	}, snake(name))
}

// IsBoolean reports whether providers take true or false for a parameter of this name, in snake or camel case.
func IsBoolean(name string) bool {
	return slices.Contains([]string{
		"store", "logprobs", "response_logprobs", "parallel_tool_calls", "disable_parallel_tool_use", "enable_thinking", "include_thoughts", "include_reasoning",
		"safe_prompt", "echo", "ignore_eos", "enable_search", "background", "use_beam_search", "skip_special_tokens", "truncate", "auto_truncate",
	}, snake(name))
}
