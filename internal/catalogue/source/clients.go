package source

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
)

// suggested are the models that examples and templates name, by provider: small ones that
// are not about to be shut down.
var suggested = map[string]string{
	"openai": "gpt-6-luna", "anthropic": "claude-haiku-5-5", "google-ai": "gemini-3.8-flash", "gcp-vertex": "claude-haiku-5-5",
	"mistral": "mistral-small-latest", "aws-bedrock": "amazon.nova-2-lite-v1:0", "azure-openai": "gpt-6.1-terra",
}

// addClientFacts adds what clients need to know of a model and the sources do not say. The
// facts are those of the providers' references of their APIs, November 2026.
func addClientFacts(m *catalogue.Model) {
	m.Suggested = suggested[m.Provider] == m.ID
	switch m.Provider {
	case "openai", "azure-openai":
		if m.Kind == catalogue.Embedding {
			m.DimensionsSet = answer(strings.HasPrefix(m.ID, "text-embedding-3-"))
		}
	case "google-ai":
		if m.Kind == catalogue.Chat {
			m.Tools.MediaResults = answer(m.Reasoning.Control == catalogue.ThinkingLevel)
		}
	case "moonshotai":
		if m.Reasoning.Reasons() { // a report of its users; the error has the index of the message
			m.Rejected = append(m.Rejected, catalogue.Rejection{Parameters: []string{"reasoning_content"}, Missing: true, When: catalogue.ReasoningOn, Status: 400,
				Text: "a tool call of the current turn without reasoning_content: while thinking is on", ThirdParty: true})
		}
	case "aws-bedrock":
		addBedrockFacts(m)
	}
}

// addBedrockFacts adds what Converse accepts for a model: markers of the prompt cache and
// the choice of a tool are those of Anthropic's and Amazon's models, markers after tools of
// Anthropic's only.
func addBedrockFacts(m *catalogue.Model) {
	publisher, name, _ := strings.Cut(m.ID, ".")
	marks := publisher == "anthropic" || publisher == "amazon"
	switch {
	case m.Kind == catalogue.Chat:
		m.Cache.Breakpoints = answer(marks && m.Cache.Supported == catalogue.Yes)
		m.Cache.ToolPoints = answer(publisher == "anthropic" && m.Cache.Supported == catalogue.Yes)
		refused := slices.ContainsFunc(m.Rejected, func(r catalogue.Rejection) bool {
			return r.When == catalogue.Always && slices.Contains(r.Parameters, "tool_choice")
		})
		m.Structured.ForcedTool = answer(marks && m.Tools.FunctionCalling == catalogue.Yes && !refused)
	case m.Kind != catalogue.Embedding:
	case publisher == "amazon" && strings.HasPrefix(name, "titan-embed"):
		m.EmbeddingProtocol, m.DimensionsSet = "titan", answer(strings.HasPrefix(name, "titan-embed-text-v2"))
	case publisher == "amazon" && strings.HasPrefix(name, "nova"):
		m.EmbeddingProtocol, m.DimensionsSet = "nova", catalogue.Yes
	case publisher == "cohere" && strings.HasPrefix(name, "embed-v4"):
		m.EmbeddingProtocol, m.DimensionsSet = "cohere-v4", catalogue.Yes
	case publisher == "cohere":
		m.EmbeddingProtocol, m.DimensionsSet = "cohere", catalogue.No
	}
}

// answer converts a bool.
func answer(yes bool) catalogue.Answer {
	if yes {
		return catalogue.Yes
	}
	return catalogue.No
}
