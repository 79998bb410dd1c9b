package spec

import "strings"

// The protocols of OpenAI's models, values of Model.API.
const (
	ChatAPI      = "chat"      // Chat Completions
	ResponsesAPI = "responses" // the Responses API
)

// UsesResponses reports whether a model of OpenAI or Azure OpenAI is called by the Responses API:
// as the document declares, or else if the service of the provider answers some requests of the
// model only there, such as those with hosted tools. Other servers may not have the API, and are called by Chat Completions.
func (m *Model) UsesResponses() bool {
	switch {
	case m.Provider != "openai" && m.Provider != "azure-openai":
		return false
	case m.API != "":
		return m.API == ResponsesAPI
	case !m.OwnService() || m.datedAPI():
		return false
	case m.HasHosted && m.Elsewhere == "" && !strings.Contains(m.Name(), "-search-"): // which search in chat completions only
		return true
	}
	known, ok := m.Known()
	effort, _ := m.InferenceParams["reasoning_effort"].(string)
	switch m.Thinking {
	case "":
	case ThinkingOff:
		effort = "none"
	default:
		effort = string(m.Thinking)
	}
	return ok && (known.Reasoning.ResponsesOnly || known.Reasoning.RefusesToolsInChat(effort))
}

// OwnService reports whether the service of the provider is called, or an endpoint of Azure OpenAI.
func (m *Model) OwnService() bool {
	row, ok := m.ProviderRow()
	return ok && (m.address() == "" || row.Name == "azure-openai" || isOwnService(row.BaseURL, m.address()))
}

// datedAPI reports whether the document has a version of Azure OpenAI's protocol with a date:
// most of them are older than the Responses API.
func (m *Model) datedAPI() bool {
	return m.APIVersion != "" && m.APIVersion != "v1" && m.APIVersion != "preview"
}
