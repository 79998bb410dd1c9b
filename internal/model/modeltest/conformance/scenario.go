package conformance

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"
)

// Scenario is what a model answers to a turn of a conversation, step by step. The step follows from the request: it is
// the number of answers since the newest message of the user.
type Scenario struct {
	// Name is the name of the scenario, a part of the addresses of the server.
	Name string `yaml:"name"`
	// About describes the scenario.
	About string `yaml:"about"`
	// Steps are the answers; the last one is repeated.
	Steps []Step `yaml:"steps"`
	// Random is whether each answer is any of the steps: the conversation before it decides. After mostSteps answers of
	// one turn, it is one that ends the turn.
	Random bool `yaml:"random"`
}

// mostSteps is how many answers of a random scenario may continue a turn.
const mostSteps = 3

// Step is one answer.
type Step struct {
	// Items are the parts of the answer in their order.
	Items []Item `yaml:"items"`
	// Stop is why the answer ends: calls and end are the default; length, filter, refusal, pause, window, malformed, continuation.
	Stop string `yaml:"stop"`
	// Usage is what the answer reports.
	Usage Usage `yaml:"usage"`
	// Tier is the service tier that the answer reports.
	Tier string `yaml:"tier"`
}

// Item is a part of an answer.
type Item struct {
	// Kind is reasoning, redacted, commentary, text, call, server (a call of a tool of the provider with its result), compaction or unknown.
	Kind string `yaml:"kind"`
	// Text is the text; {ref} is replaced by the name of the item.
	Text string `yaml:"text"`
	// Name is the tool of a call, or the type of an unknown item.
	Name string `yaml:"name"`
	// Arguments are those of a call, JSON.
	Arguments string `yaml:"arguments"`
	// Omitted leaves out the text of reasoning, so that only its signature is sent.
	Omitted bool `yaml:"omitted"`
}

// Usage counts the tokens of an answer. Input includes Cached, Write5m and Write1h.
type Usage struct {
	// Input are the tokens read.
	Input int `yaml:"input"`
	// Cached are the tokens read from the prompt cache.
	Cached int `yaml:"cached"`
	// WriteShort are the tokens written to the prompt cache for the shorter lifetime: 5 or 30 minutes.
	WriteShort int `yaml:"write_short"`
	// WriteLong are the tokens written for the longer lifetime: 1 or 12 hours.
	WriteLong int `yaml:"write_long"`
	// Output are the tokens written, with those of reasoning.
	Output int `yaml:"output"`
	// Reasoning are the tokens of reasoning.
	Reasoning int `yaml:"reasoning"`
}

//go:embed scenarios.yaml
var scenariosFile []byte

// Scenarios returns all scenarios.
var Scenarios = sync.OnceValue(func() []Scenario {
	var file struct {
		Scenarios []Scenario `yaml:"scenarios"`
	}
	if err := yaml.Load(scenariosFile, &file, yaml.WithKnownFields()); err != nil {
		panic(fmt.Sprintf("scenarios.yaml: %v", err)) // the file is a part of the program, and a test reads it
	}
	return file.Scenarios
})

// lookupScenario returns the scenario of a name.
func lookupScenario(name string) (Scenario, bool) {
	i := slices.IndexFunc(Scenarios(), func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		return Scenario{}, false
	}
	return Scenarios()[i], true
}

// step returns the step of an index; the last one for those after it.
func (s Scenario) step(i int) (Step, int) {
	i = min(i, len(s.Steps)-1)
	return s.Steps[i], i
}

// items returns what the step sends: without reasoning if the model does not reason.
func (s Step) items(reasoning bool) []Item {
	return slices.DeleteFunc(slices.Clone(s.Items), func(i Item) bool {
		return !reasoning && (i.Kind == "reasoning" || i.Kind == "redacted")
	})
}

// calls reports whether the step calls tools of the client.
func (s Step) calls() bool {
	return slices.ContainsFunc(s.Items, func(i Item) bool { return i.Kind == "call" })
}

// answer is a step that is sent as the answer to a request.
type answer struct {
	Step
	token        // without the item
	items []Item // what is sent
}

// pick returns the index of a step that the nonce of the answer selects, with calls of these tools only.
func (s Scenario) pick(nonce string, done int, tools []string) int {
	i := int(seal("pick", nonce)[0]) % len(s.Steps)
	for done >= mostSteps && (s.Steps[i].calls() || s.Steps[i].Stop != "") || !s.Steps[i].has(tools) {
		i = (i + 1) % len(s.Steps)
	}
	return i
}

// has reports whether the step calls these tools only.
func (s Step) has(tools []string) bool {
	return !slices.ContainsFunc(s.Items, func(i Item) bool { return i.Kind == "call" && !slices.Contains(tools, i.Name) })
}

// newAnswer makes the answer to a request. A model that must not call tools answers at once.
func newAnswer(c *conversation) answer {
	prefix, nonce := c.prefix(len(c.parts)), c.nonce(len(c.parts))
	done := c.stepIndex()
	step, i := c.scenario.step(done)
	if c.scenario.Random {
		step, i = c.scenario.step(c.scenario.pick(nonce, done, c.tools))
	}
	if step.calls() && (len(c.tools) == 0 || c.forbids) {
		step, i = c.scenario.step(len(c.scenario.Steps) - 1)
	}
	a := answer{Step: step, items: step.items(c.reasons),
		token: token{Origin: c.origin, Model: c.model, Scenario: c.scenario.Name, Step: i, Reasons: c.reasons, Prefix: prefix, Nonce: nonce}}
	for k := range a.items {
		item := &a.items[k]
		if item.Kind == "call" && !slices.Contains(c.tools, item.Name) {
			item.Name, item.Arguments = c.tools[0], "{}"
		}
		item.Text = strings.ReplaceAll(item.Text, "{ref}", a.ref(k))
	}
	return a
}

// ref returns the short name of an item.
func (a answer) ref(item int) string {
	return ref{Step: a.token.Step, Reasons: a.Reasons, Item: item, Nonce: a.Nonce}.text(a.Origin+" "+a.Model, a.Scenario)
}

// seal returns the token of an item.
func (a answer) seal(item int) string {
	t := a.token
	t.Item = item
	return t.String()
}

// proof returns the text of reasoning that has no signature: the text has the token in it.
func (a answer) proof(item int) string { return a.items[item].Text + " (" + a.seal(item) + ")" }

// joined returns the texts of the answer.
func (a answer) joined() string {
	var parts []string
	for _, i := range a.items {
		if i.Kind == "text" || i.Kind == "commentary" {
			parts = append(parts, i.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// stop returns the word of a provider for the reason of the end.
func (a answer) stop(words map[string]string) string {
	kind := a.Stop
	if kind == "" {
		kind = "end"
		if slices.ContainsFunc(a.items, func(i Item) bool { return i.Kind == "call" }) {
			kind = "calls"
		}
	}
	return words[kind]
}

// indexOf returns the index of the first item of a kind, -1 for none.
func (a answer) indexOf(kind string) int {
	return slices.IndexFunc(a.items, func(i Item) bool { return i.Kind == kind })
}

// signed returns the index of the item that has Google's signature: the first call, else the last text.
func (a answer) signed() int {
	if i := a.indexOf("call"); i >= 0 || !a.Reasons {
		return i
	}
	for i, item := range slices.Backward(a.items) {
		if item.Kind == "text" {
			return i
		}
	}
	return -1
}
