package conversation_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/model/modeltest/conformance"
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
	approve  bool               // calls of the tool need an approval
	parallel bool               // parallel_tools
	form     bool               // the answer is an object
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
	return document{
		models:   rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 3, makerOf).Draw(t, "models"),
		approve:  rapid.Bool().Draw(t, "approve"),
		parallel: rapid.Bool().Draw(t, "parallel"),
		form:     rapid.IntRange(0, 4).Draw(t, "form") == 4,
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
		if i == 0 && len(d.models) > 1 {
			row["fallbacks"] = []string{"m1", "m2"}[:len(d.models)-1]
		}
		text, err := json.Marshal(row)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "  - %s\n", text)
	}
	fmt.Fprintf(&b, "memories: [{id: talk, %s}]\n", d.memory)
	output := "{id: answer, type: text}"
	if d.form {
		b.WriteString("types: [{id: Arrival, properties: {answer: text}}]\n")
		output = "{id: answer, type: Arrival}"
	}
	b.WriteString("tools: [{type: APITool, id: find, name: find_order, description: Finds an order., endpoint: \"https://orders.example.com/find\", method: POST, inputs: [{id: number, type: text}], outputs: [{id: state, type: text}]}]\n")
	agent := []string{"type: Agent", "id: assist", "model: m0", "memory: talk", "tools: [find]", "inputs: [question]", "outputs: [answer]",
		fmt.Sprint("parallel_tools: ", d.parallel), fmt.Sprint("max_tool_executions: ", d.limit)}
	if d.approve {
		agent = append(agent, "approve: [find]")
	}
	if d.system != "" {
		agent = append(agent, "system_message: "+d.system)
	}
	fmt.Fprintf(&b, "flows:\n  - id: main\n    variables: [{id: question, type: text}, %s]\n    inputs: [question]\n    outputs: [answer]\n    steps: [{%s}]\n", output, strings.Join(agent, ", "))
	return b.String()
}

// environment has the credentials of all providers.
func environment(name string) string {
	if strings.HasSuffix(name, "_API_KEY") && slices.Contains([]string{"OPENAI", "ANTHROPIC", "GEMINI", "MISTRAL", "OLLAMA", "AZURE_OPENAI"}, strings.TrimSuffix(name, "_API_KEY")) {
		return "key-of-" + name
	}
	return map[string]string{"AZURE_OPENAI_ENDPOINT": "https://shop.openai.azure.com", "AWS_BEARER_TOKEN_BEDROCK": "key-of-aws", "AWS_REGION": "us-east-1", "GOOGLE_CLOUD_PROJECT": "shop"}[name]
}
