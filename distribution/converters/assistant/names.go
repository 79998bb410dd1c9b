package assistant

import (
	"slices"

	"github.com/qtype-dev/qtype/distribution/converters/code"
)

// names are a name in documents and the names of it in programs.
type names struct {
	document string
	java     []string // LangChain4j: classes without ChatModel, and keys of Spring and Quarkus
	python   []string // LangChain: classes, and providers of init_chat_model
}

// providers returns the table of providers.
func providers() []names {
	return []names{
		{"openai", []string{"OpenAi", "OpenAiOfficial", "open-ai", "openai"}, []string{"ChatOpenAI", "openai"}},
		{"azure-openai", []string{"AzureOpenAi", "azure-open-ai", "azure-openai"}, []string{"AzureChatOpenAI", "azure_openai"}},
		{"anthropic", []string{"Anthropic", "anthropic"}, []string{"ChatAnthropic", "anthropic"}},
		{"google-ai", []string{"GoogleAiGemini", "google-ai-gemini", "ai.gemini"}, []string{"ChatGoogleGenerativeAI", "google_genai"}},
		{"gcp-vertex", []string{"VertexAiGemini", "vertex-ai-gemini", "vertexai.gemini"}, []string{"ChatVertexAI", "google_vertexai"}},
		{"mistral", []string{"MistralAi", "mistral-ai", "mistralai"}, []string{"ChatMistralAI", "mistralai"}},
		{"ollama", []string{"Ollama", "ollama"}, []string{"ChatOllama", "ollama"}},
		{"aws-bedrock", []string{"Bedrock", "bedrock"}, []string{"ChatBedrock", "ChatBedrockConverse", "bedrock", "bedrock_converse"}},
	}
}

// parameters returns the table of parameters of requests.
func parameters() []names {
	return []names{
		{"temperature", []string{"temperature"}, []string{"temperature"}},
		{"top_p", []string{"topP"}, []string{"top_p"}},
		{"top_k", []string{"topK"}, nil},
		{"max_tokens", []string{"maxTokens", "maxCompletionTokens", "maxOutputTokens", "numPredict"}, []string{"max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict"}},
		{"presence_penalty", []string{"presencePenalty"}, []string{"presence_penalty"}},
		{"frequency_penalty", []string{"frequencyPenalty"}, []string{"frequency_penalty"}},
		{"stop", []string{"stop", "stopSequences"}, []string{"stop", "stop_sequences"}},
		{"seed", []string{"seed", "randomSeed"}, []string{"seed"}},
	}
}

// in reports whether a program in a language uses a name.
func (n names) in(l code.Language, name string) bool {
	if l == code.Java {
		return slices.Contains(n.java, name)
	}
	return slices.Contains(n.python, name)
}

// Provider returns the provider of documents for the name of one in a program. known is false
// for a name without a counterpart.
func Provider(l code.Language, name string) (provider string, known bool) {
	provider = find(providers(), l, name)
	return provider, provider != ""
}

// Parameter returns the parameter of requests for the name of one in a program; empty for none.
func Parameter(l code.Language, name string) string { return find(parameters(), l, name) }

func find(table []names, l code.Language, name string) string {
	if i := slices.IndexFunc(table, func(n names) bool { return n.in(l, name) }); i >= 0 {
		return table[i].document
	}
	return ""
}
