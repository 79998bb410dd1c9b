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
	m.MidSystem = midSystem(m)
	switch m.Provider {
	case "openai", "azure-openai":
		if m.Kind == catalogue.Embedding {
			m.DimensionsSet = answer(strings.HasPrefix(m.ID, "text-embedding-3-"))
		}
		if m.ID == "o1-pro" || m.ID == "gpt-5-pro" { // LiteLLM 1.110.2
			m.Streaming = catalogue.StreamsNever
		}
	case "qwen": // while they think, by the reports of users: github.com/vybestack/llxprt-code/issues/229, github.com/modelscope/modelscope/issues/1513
		if strings.HasPrefix(m.ID, "qwq") || strings.HasSuffix(m.ID, "-thinking") || m.ID == "qwen3-30b-a3b" {
			m.Streaming = catalogue.StreamsAlways
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
	case "zai":
		if m.Kind == catalogue.Chat && m.Tools.ToolChoice == catalogue.Yes { // reports of users of Z.ai, directly and by gateways
			m.Tools.ToolChoices = []string{"auto"}
			m.Rejected = append(m.Rejected, catalogue.Rejection{Parameters: []string{"tool_choice"}, Except: []string{"auto"}, When: catalogue.Always, Status: 400,
				Error: "Tool choice must be auto", Text: "tool_choice other than auto: always", ThirdParty: true,
				Sources: []string{"https://github.com/vectorize-io/hindsight/issues/4246", "https://github.com/onyx-dot-app/onyx/pull/14192"}})
		}
	case "aws-bedrock":
		addBedrockFacts(m)
	}
}

// midSystemModels begin the names of the models for which Anthropic publishes system messages within a
// conversation. Claude Sonnet 5 accepts them and ignores them (pydantic-ai-slim 2.68.0).
var midSystemModels = []string{"claude-fable-5", "claude-mythos-5", "claude-opus-4-8", "claude-opus-5", "claude-sonnet-5-5", "claude-haiku-5-5"}

// midSystem returns whether a conversation with a model can have system messages after its beginning.
func midSystem(m *catalogue.Model) catalogue.Answer {
	name := strings.TrimPrefix(m.ID, "anthropic.")
	if !slices.Contains([]string{"anthropic", "gcp-vertex", "aws-bedrock"}, m.Provider) || !strings.HasPrefix(name, "claude-") {
		return catalogue.Unknown
	}
	return answer(slices.ContainsFunc(midSystemModels, func(prefix string) bool { return strings.HasPrefix(name, prefix) }))
}

// structuredOnBedrock begin the names of Anthropic's models whose answers Converse binds to a schema: 4.5 and
// later, except Fable, by docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html and
// pydantic-ai-slim 2.68.0.
var structuredOnBedrock = []string{"claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-6", "claude-sonnet-4-6", "claude-opus-4-7", "claude-opus-4-8",
	"claude-opus-5", "claude-sonnet-5", "claude-haiku-5-5", "claude-mythos-5"}

// addClaudeSchemas corrects what the reference has of schemas on Bedrock: LiteLLM knows the models in one
// region only. Strict tools come with the same feature, but LiteLLM has refusals for newer models.
func addClaudeSchemas(m *catalogue.Model, name string) {
	if !slices.ContainsFunc(structuredOnBedrock, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return
	}
	if m.Structured.JSONSchema == catalogue.No {
		m.Structured.JSONSchema = catalogue.Yes
		m.Disagreement = append(m.Disagreement, "json_schema: LiteLLM has false for the plain id; AWS's guide has structured output from 4.5 on")
	}
	m.Structured.StrictTools = answer(strings.Contains(name, "-4-5") || strings.Contains(name, "-4-6"))
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
		if publisher == "anthropic" {
			addClaudeSchemas(m, name)
		}
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
