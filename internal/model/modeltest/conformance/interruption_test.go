package conformance_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/model/modeltest/conformance"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// interruption is what happens to a conversation between its requests.
type interruption struct {
	begin func(c *trial) // before the first question
	step  func(c *trial) // after each answer and the results of its calls
	turn  func(c *trial) // before each question but the first
}

// interruptions are what a case can name as after. Runs on Temporal are tested with the program.
func interruptions() map[string]interruption {
	return map[string]interruption{
		"restart":  {step: restart},
		"suspend":  {step: suspend},
		"replica":  {step: replica},
		"fallback": {begin: answeredBy(sibling)},
		"api":      {begin: answeredBy(stranger)},
		"system":   {turn: func(c *trial) { c.system += " It is noon." }},
		"trimmed":  {turn: trim},
		"model":    {turn: func(c *trial) { c.Model = "claude-sonnet-5-5"; c.client = c.open(c.Case) }},
	}
}

// restart ends the process between a call and its result: what is left of the conversation is JSON.
func restart(c *trial) {
	raw, err := json.Marshal(c.list)
	testkit.Must(c.t, err)
	c.list = nil
	testkit.Must(c.t, json.Unmarshal(raw, &c.list))
	c.client = c.open(c.Case)
}

// suspend stores the conversation in a memory on disk, and reads it in another one, as a run that waits for an approval.
func suspend(c *trial) {
	path := filepath.Join(c.t.(*testing.T).TempDir(), "chat.db")
	withMemory(c, path, func(m *memory.Memory) {
		turn, err := m.Begin(c.t.Context(), "s")
		testkit.Must(c.t, err)
		testkit.Must(c.t, turn.Add(c.list...))
		testkit.Must(c.t, turn.Commit(c.t.Context()))
	})
	c.list = nil
	withMemory(c, path, func(m *memory.Memory) {
		for e, err := range m.History(c.t.Context(), "s") {
			testkit.Must(c.t, err)
			c.list = append(c.list, e.Message)
		}
	})
	c.client = c.open(c.Case)
}

// counter counts no tokens: nothing leaves the memory.
type counter struct{}

func (counter) Count(string) int { return 0 }

// withMemory opens the memory in a file.
func withMemory(c *trial, path string, use func(*memory.Memory)) {
	s, err := sqlite.Open(path)
	testkit.Must(c.t, err)
	defer func() { testkit.Must(c.t, s.Close()) }()
	m, err := memory.New(memory.Config{ID: "chat", Counter: counter{}}, s)
	testkit.Must(c.t, err)
	use(m)
}

// replica continues in another process, whose requests another replica of the provider answers.
func replica(c *trial) {
	restart(c)
	c.former = append(c.former, c.server.Verdicts()...)
	c.server = conformance.New(c.t)
	c.client = c.open(c.Case)
}

// trim drops the first turn, as a memory with a limit does.
func trim(c *trial) {
	for i, m := range c.list {
		if i > 0 && m.Role == chat.User {
			c.list = c.list[i:]
			return
		}
	}
}

// answeredBy lets another model answer the first question, up to the results of its calls: the model of the case is its
// fallback, or the other way round.
func answeredBy(choose func(c *trial) conformance.Case) func(c *trial) {
	return func(c *trial) {
		own := c.client
		c.client = c.open(choose(c))
		c.list = append(c.list, chat.Text(chat.User, "Question 0: where are order 7 and 8?"))
		_, err := c.call()
		testkit.Must(c.t, err)
		c.client = own
	}
}

// sibling is a model with the same protocol at another server.
func sibling(c *trial) conformance.Case {
	switch {
	case c.Provider == "anthropic":
		return conformance.Case{Provider: "gcp-vertex", Model: "claude-opus-5"}
	case c.Provider == "google-ai":
		return conformance.Case{Provider: "gcp-vertex", Model: "gemini-3.8-flash"}
	case c.Provider == "gcp-vertex":
		return conformance.Case{Provider: "google-ai", Model: "gemini-3.8-flash"}
	case c.Provider == "openai" && c.Server == "" && c.API != "chat":
		return conformance.Case{Provider: "azure-openai", Model: "gpt-6-sol", API: "responses"}
	case c.Provider == "aws-bedrock":
		return conformance.Case{Provider: "anthropic", Model: "claude-opus-5"}
	}
	return conformance.Case{Provider: "openai", Server: "deepseek", Model: "deepseek-v4-pro"}
}

// stranger is a model with another protocol.
func stranger(c *trial) conformance.Case {
	if c.Provider == "anthropic" {
		return conformance.Case{Provider: "openai", Model: "gpt-6-sol", API: "responses"}
	}
	return conformance.Case{Provider: "anthropic", Model: "claude-opus-5-5"}
}
