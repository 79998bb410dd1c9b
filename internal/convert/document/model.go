package document

import (
	"cmp"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
)

const groqKey = "groq_key"

// GroqAuth declares the credentials of Groq: its server speaks the OpenAI protocol
// but must not receive the OpenAI key.
func GroqAuth() *Block {
	return new(Block).Set("type", "api_key").Set("id", groqKey).Set("api_key", EnvText("${GROQ_API_KEY:-}")).Set("host", groqServer)
}

const groqServer = "https://api.groq.com/openai/v1"

// SuggestedModel returns the model of a provider that a document names where its source names
// none; OpenAI's for a provider without a suggestion.
func SuggestedModel(provider string) string {
	if provider == "ollama" {
		return "llama3.2" // local models are not in the catalogue
	}
	return cmp.Or(catalogue.Suggested(provider), catalogue.Suggested("openai"))
}

// SetProvider sets the provider of a model and reports whether its name is known.
func (b *Block) SetProvider(provider string) bool {
	example := map[string]string{"openai": "gpt-", "anthropic": "claude", "google": "gemini", "googleai": "gemini", "gemini": "gemini", "vertexai": "gemini",
		"groq": "gpt-", "mistral": "mistral", "mistralai": "mistral"}[provider]
	if example == "" {
		return false
	}
	like, _ := NewModel("", example)
	entries := b.Entries[:2:2] // type and id
	for _, e := range like.Entries[2:] {
		if e.Key == "model_id" {
			e = b.Entries[3]
		}
		entries = append(entries, e)
	}
	b.Entries = entries
	if provider == "groq" {
		b.Entries[2].Note = "Needs GROQ_API_KEY."
		b.Set("base_url", groqServer).Set("auth", groqKey)
	}
	return true
}

// NewModel declares a model. known is false if the provider cannot be inferred from
// the name.
func NewModel(id, name string) (b *Block, known bool) {
	provider, key := "", ""
	bare := strings.ToLower(name[strings.LastIndex(name, "/")+1:])
	starts := func(prefixes ...string) bool {
		for _, p := range prefixes {
			if strings.HasPrefix(bare, p) {
				return true
			}
		}
		return false
	}
	switch {
	case starts("gpt-", "chatgpt", "o1", "o3", "o4", "text-davinci"):
		provider, key = "openai", "OPENAI_API_KEY"
	case starts("claude"):
		provider, key = "anthropic", "ANTHROPIC_API_KEY"
	case starts("gemini"):
		provider, key = "google-ai", "GOOGLE_API_KEY"
	case starts("mistral", "codestral", "ministral", "open-mistral", "open-mixtral", "pixtral"):
		provider, key = "mistral", "MISTRAL_API_KEY"
	}
	b = new(Block).Set("type", "Model").Set("id", id)
	known = provider != ""
	if !known {
		provider, key = "openai", "OPENAI_API_KEY"
	}
	b.Set("provider", provider).Note("Needs %s.", key)
	return b.Set("model_id", name), known
}

// declareMock declares the model that is used while there is no key, so that the
// converted application can be tried at once.
func declareMock(id string) *Block {
	echo := new(Block).Set("echo", true)
	echo.Inline = true
	return new(Block).Set("type", "Model").Set("id", id).Set("provider", "mock").
		Note("Echoes its input while there is no key.").Set("rules", []*Block{echo})
}

// AttachMock makes the models fall back to a mock while there is no key.
func AttachMock(app *App, ids *IDs) {
	mock := ""
	for _, m := range app.Models {
		provider, skip := "", false
		for _, e := range m.Entries {
			switch e.Key {
			case "provider":
				provider, _ = e.Value.(string)
			case "offline", "base_url": // a server with a custom URL needs no key
				skip = true
			}
		}
		if skip || provider == "mock" || provider == "aws-bedrock" {
			continue
		}
		if mock == "" {
			mock = ids.New("practice", "practice")
		}
		m.Set("offline", mock)
	}
	if mock != "" {
		app.Models = append(app.Models, declareMock(mock))
	}
}

// AddChatFlows adds a conversational flow for each memory, with a placeholder
// model.
func AddChatFlows(app *App, ids *IDs, memories []string) {
	mock := ids.New("practice", "practice")
	model := ids.New("assistant", "assistant")
	app.Models = append(app.Models, new(Block).Set("type", "Model").Set("id", model).Set("provider", "openai").
		Note("The file names no model: set yours here. Needs OPENAI_API_KEY.").Set("model_id", SuggestedModel("openai")).Set("offline", mock), declareMock(mock))
	message := &Type{Kind: Message, Declared: true}
	for _, memory := range memories {
		name := "chat"
		if len(memories) > 1 {
			name = "chat_" + memory
		}
		f := &Flow{ID: ids.New(name, "chat"), Types: func(string) *Type { return message }, Conversational: true,
			Inputs: []string{"question"}, Outputs: []string{"answer"}}
		b := new(Block).Set("type", "LLMInference").Set("id", ids.New(f.ID+"_answer", "answer")).Set("model", model).Set("memory", memory).
			Set("inputs", NameList{"question"}).Set("outputs", NameList{"answer"})
		f.Steps = []*Step{{Block: b, Reads: f.Inputs, Writes: f.Outputs}}
		app.Flows = append(app.Flows, f)
	}
}
