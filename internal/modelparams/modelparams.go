// Package modelparams decides which inference_params of a model a request can have. The
// clients of models and the validator call it, so that a run refuses what validation reports.
package modelparams

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
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

// Encode encodes the parameters of a model as JSON, by their names.
func (p Protocol) Encode(params map[string]any) (map[string]json.RawMessage, error) {
	encoded, reserved := make(map[string]json.RawMessage, len(params)), p.Reserved()
	for _, name := range slices.Sorted(maps.Keys(params)) { // sorted, so that the error is always the same
		if slices.Contains(reserved, name) {
			return nil, fmt.Errorf("inference_params must not contain %q, which qtype sets itself", name)
		}
		raw, err := json.Marshal(params[name])
		if err != nil {
			return nil, fmt.Errorf("inference_params: %s cannot be encoded as JSON", name)
		}
		encoded[name] = raw
	}
	return encoded, nil
}

// Check returns why the client of a model refuses its inference_params, nil if it does not
// or if another library calls the model.
func Check(m spec.ModelEntity) error {
	_, embeds := m.(*spec.EmbeddingModel)
	p := protocolOf(m.Base(), embeds)
	if p == 0 {
		return nil
	}
	_, err := p.Encode(m.Base().InferenceParams)
	return err
}

// protocolOf returns the protocol by which a model is called, 0 for an unknown one.
func protocolOf(m *spec.Model, embeds bool) Protocol {
	row, known := spec.LookupProvider(m.Provider)
	if !known || row.Client != spec.NativeClient {
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
	return either(embeds, Embeddings, openAIChat(m.API))
}

func either(first bool, a, b Protocol) Protocol {
	if first {
		return a
	}
	return b
}

// openAIChat returns the protocol of an API that a model of OpenAI declares.
func openAIChat(api string) Protocol { return either(api == "responses", Responses, ChatCompletions) }

// VertexChat returns the protocol of a chat model of Vertex AI.
func VertexChat(name string) Protocol {
	return either(strings.HasPrefix(name[strings.LastIndexByte(name, '/')+1:], "claude"), VertexMessages, Gemini)
}

func bedrockEmbeddings(name string) Protocol {
	return either(strings.Contains(name, "cohere.embed"), CohereEmbed, Titan)
}
