package conversation_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/model/modeltest/conformance"
)

// candidates returns the models of the conformance cases that call tools, each once.
func candidates() (list []conformance.Case) {
	seen := map[string]bool{}
	for _, rule := range conformance.Rules().Rules {
		for _, c := range rule.Cases {
			one := conformance.Case{Provider: c.Provider, Server: c.Server, Model: c.Model, API: c.API, Params: c.Params}
			name := nameOf(one)
			if !c.Tools || c.Invalid || c.Retries || c.Expect.Error != "" || seen[name] {
				continue
			}
			seen[name] = true
			list = append(list, one)
		}
	}
	return list
}

// nameOf identifies a candidate in messages.
func nameOf(c conformance.Case) string {
	params, err := json.Marshal(c.Params)
	if err != nil {
		panic(err) // the parameters were read from YAML
	}
	return fmt.Sprint(cmp.Or(c.Server, c.Provider), " ", c.Model, " ", c.API, " ", string(params))
}

// makerOf identifies the server and the model of a candidate: a document has each once.
func makerOf(c conformance.Case) string {
	return fmt.Sprint(cmp.Or(c.Server, c.Provider), " ", c.Model)
}

// document is what a conversation draws of the document.
type document struct {
	models   []conformance.Case // the model of the agent, then its fallbacks
	handoff  bool               // the agent can transfer to another one, which has the models after the first
	approve  bool               // calls of the tool need an approval
	parallel bool               // parallel_tools
	answer   string             // the type of the answer
	limit    int                // max_tool_executions
	memory   string             // the keys of the memory
	system   string
}

// memories are the policies of memories: most have small windows.
var memories = [...]string{
	"policy: unbounded",
	"policy: flush, token_limit: 50000",
	"policy: flush, token_limit: 1400, chat_history_token_ratio: 0.5, token_flush_size: 100",
	"policy: flush, token_limit: 1400, chat_history_token_ratio: 0.5, token_flush_size: 100, context: [{type: variables}]",
	"policy: message_window, max_messages: 7",
	"policy: token_window, max_tokens: 700",
	"policy: round_window, n_rounds: 2",
	"policy: flush, token_limit: 50000, context: [{type: pinned, text: The shop is closed on Sunday.}, {type: variables}]",
	"policy: unbounded, shorten_tool_results: 50, keep_tool_results: 1",
}

// drawDocument draws a document.
func drawDocument(t *rapid.T, all []conformance.Case) document {
	models := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 3, makerOf).Draw(t, "models")
	handoff, answers := len(models) > 1 && rapid.IntRange(0, 2).Draw(t, "handoff") == 0, []string{"text", "text", "ChatMessage", "Arrival"}
	if handoff {
		answers = answers[:3] // agents with handoffs answer with messages
	}
	return document{
		models:   models,
		handoff:  handoff,
		approve:  rapid.Bool().Draw(t, "approve"),
		parallel: rapid.Bool().Draw(t, "parallel"),
		answer:   rapid.SampledFrom(answers).Draw(t, "answer"),
		limit:    rapid.SampledFrom([]int{20, 20, 20, 2, 1}).Draw(t, "limit"),
		memory:   rapid.SampledFrom(memories[:]).Draw(t, "memory"),
		system:   rapid.SampledFrom([]string{"", "Be brief."}).Draw(t, "system"),
	}
}

// yaml writes the document.
func (d document) yaml(at conformance.Endpoint) string {
	var b strings.Builder
	b.WriteString("id: desk\nauths: [{type: bearer_token, id: google, token: token-of-vertex}]\nmodels:\n")
	for i, m := range d.models {
		row := map[string]any{"type": "Model", "id": fmt.Sprint("m", i), "provider": m.Provider, "model_id": m.Model, "retry": map[string]any{"max_attempts": 1}, "on_truncation": "continue"}
		if m.Provider == "gcp-vertex" {
			row["auth"] = "google"
		}
		if m.API != "" {
			row["api"] = m.API
		}
		if len(m.Params) > 0 {
			row["inference_params"] = m.Params
		}
		if m.Server != "" {
			row["base_url"] = at.Address(m.Server)
			if m.Provider == "anthropic" {
				row["base_url"] = at.Address(m.Server) + "/anthropic"
			}
		}
		switch others := len(d.models) - 1; {
		case d.handoff && i == 1 && others == 2:
			row["fallbacks"] = []string{"m2"}
		case !d.handoff && i == 0 && others > 0:
			row["fallbacks"] = []string{"m1", "m2"}[:others]
		}
		text, err := json.Marshal(row)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "  - %s\n", text)
	}
	fmt.Fprintf(&b, "memories: [{id: talk, %s}, {id: aid, %s}]\n", d.memory, d.memory)
	b.WriteString("types: [{id: Arrival, properties: {answer: text}}]\n")
	b.WriteString("tools: [{type: APITool, id: find, name: find_order, description: Finds an order., endpoint: \"https://orders.example.com/find\", method: POST, inputs: [{id: number, type: text}], outputs: [{id: state, type: text}]}]\n")
	b.WriteString("flows:\n")
	question := "text"
	if d.answer == "ChatMessage" {
		question = d.answer
	}
	flow := func(id, agent string) {
		fmt.Fprintf(&b, "  - id: %s\n    description: Answers questions about orders.\n    variables: [{id: question, type: %s}, {id: answer, type: %s}]\n    inputs: [question]\n    outputs: [answer]\n    steps: [{%s}]\n", id, question, d.answer, agent)
	}
	if d.handoff {
		flow("main", d.agent("assist", "model: m0", "memory: talk", "handoffs: [help]"))
		flow("help", d.agent("aide", "model: m1", "memory: aid"))
	} else {
		flow("main", d.agent("assist", "model: m0", "memory: talk"))
	}
	return b.String()
}

// agent returns a step.
func (d document) agent(id string, keys ...string) string {
	keys = append(keys, "type: Agent", "id: "+id, "tools: [find]", "inputs: [question]", "outputs: [answer]",
		fmt.Sprint("parallel_tools: ", d.parallel), fmt.Sprint("max_tool_executions: ", d.limit))
	if d.approve {
		keys = append(keys, "approve: [find]")
	}
	if d.system != "" {
		keys = append(keys, "system_message: "+d.system)
	}
	return strings.Join(keys, ", ")
}

// environment has the credentials of all providers.
func environment(name string) string {
	if strings.HasSuffix(name, "_API_KEY") && slices.Contains([]string{"OPENAI", "ANTHROPIC", "GEMINI", "MISTRAL", "OLLAMA", "AZURE_OPENAI"}, strings.TrimSuffix(name, "_API_KEY")) {
		return "key-of-" + name
	}
	return map[string]string{"AZURE_OPENAI_ENDPOINT": "https://shop.openai.azure.com", "AWS_BEARER_TOKEN_BEDROCK": "key-of-aws", "AWS_REGION": "us-east-1", "GOOGLE_CLOUD_PROJECT": "shop"}[name]
}
