package conformance

import (
	_ "embed"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"
)

// Rule is what a provider enforces: requests that it matches must pass its check.
type Rule struct {
	// ID names the rule.
	ID string `yaml:"id"`
	// Number is the number of the requirement that the rule belongs to. Several rules can have one number.
	Number string `yaml:"number"`
	// Title is the requirement, a sentence without a period.
	Title string `yaml:"title"`
	// Wires are the protocols in which the rule holds.
	Wires []string `yaml:"wires"`
	// Servers are the servers that have the rule; all of the protocol if empty.
	Servers []string `yaml:"servers"`
	// Models is a regular expression for the whole name of a model; all if empty.
	Models string `yaml:"models"`
	// When has further conditions, which must all hold.
	When []Condition `yaml:"when"`
	// Check is what a request must fulfil.
	Check Check `yaml:"check"`
	// Refusal is the answer to a request that does not.
	Refusal Refusal `yaml:"refusal"`
	// Wording is where the text is from: official, reported by third parties, unconfirmed, or own, where the provider has none that is known.
	Wording string `yaml:"wording"`
	// Source is an address with the rule.
	Source string `yaml:"source"`
	// Cases are conversations in which a client must fulfil the rule.
	Cases []Case `yaml:"cases"`

	models *regexp.Regexp
}

// Condition is a property of a request. All fields that are set must hold.
type Condition struct {
	// Field is the path of a field, such as thinking.type.
	Field string `yaml:"field"`
	// Default is the value of a field that is not sent.
	Default string `yaml:"default"`
	// In are the values of which the field has one.
	In []string `yaml:"in"`
	// Not are the values that the field does not have.
	Not []string `yaml:"not"`
	// Present is whether the field is sent.
	Present *bool `yaml:"present"`
	// Reasoning is whether the model reasons, by the table of models that do.
	Reasoning *bool `yaml:"reasoning"`
	// Header is a header, in place of a field.
	Header string `yaml:"header"`
	// Lacks is a value that the header anthropic-beta does not have.
	Lacks string `yaml:"lacks"`
}

// Check is a function of the closed set and its parameters.
type Check struct {
	// Name is the function.
	Name string `yaml:"name"`
	// Fields are paths of fields; * means any key or index.
	Fields []string `yaml:"fields"`
	// Values are values of a field, in the sense of the function.
	Values []string `yaml:"values"`
	// Limit is the largest number, or the smallest, that is allowed.
	Limit int `yaml:"limit"`
	// Kinds are kinds of items.
	Kinds []string `yaml:"kinds"`
	// Breaches are the ways in which items may not come back: lost, altered, reordered, phase; of results: missing, orphan; of signatures: missing, foreign. All if empty.
	Breaches []string `yaml:"breaches"`
	// Scope is which answers must come back whole: turn, those since the newest message of the user, or all.
	Scope string `yaml:"scope"`
	// Partial ignores answers of which no reasoning came back.
	Partial bool `yaml:"partial"`
	// SamePrefix ignores answers before which the conversation has changed.
	SamePrefix bool `yaml:"same_prefix"`
}

// Refusal is an error of a provider.
type Refusal struct {
	// Status is the HTTP status. 0 accepts the request, as the provider does, and records the violation.
	Status int `yaml:"status"`
	// Text is the message, with placeholders such as {model}, {field}, {value} and {at}.
	Text string `yaml:"text"`
	// Type is the type of the error in OpenAI's and Anthropic's form; the default is invalid_request_error.
	Type string `yaml:"type"`
	// Param is the field in OpenAI's form.
	Param string `yaml:"param"`
	// Code is the code in OpenAI's form.
	Code string `yaml:"code"`
}

// Server is a simulated server.
type Server struct {
	// Name is the name, a part of the addresses.
	Name string `yaml:"name"`
	// Hosts are patterns of the hosts of the provider: * means a part of a name.
	Hosts []string `yaml:"hosts"`
	// Base is the path that belongs to the base URL of a client, such as /v1.
	Base string `yaml:"base"`
	// Reasoning is how chat completions have reasoning: reasoning_content, reasoning, reasoning_details, think, parts, google, or nothing.
	Reasoning string `yaml:"reasoning"`
	// Phases is whether messages of the Responses API have a phase.
	Phases bool `yaml:"phases"`
	// Account is the header whose value identifies the account, where keys do not change.
	Account string `yaml:"account"`
}

// Reasoning is when models reason.
type Reasoning struct {
	// Wires are the protocols.
	Wires []string `yaml:"wires"`
	// Servers are the servers; all if empty.
	Servers []string `yaml:"servers"`
	// Models is a regular expression for the whole name.
	Models string `yaml:"models"`
	// Default is whether models reason if the request does not set it.
	Default bool `yaml:"default"`
	// Off are the values that turn it off; none if it cannot be.
	Off []string `yaml:"off"`

	models *regexp.Regexp
}

// Model is a model that GET /models/{id} knows.
type Model struct {
	// ID is the name of the model.
	ID string `yaml:"id"`
	// ShutdownDate is the day after which it does not answer; empty for none.
	ShutdownDate string `yaml:"shutdown_date"`
}

// Case is a conversation that a client has with the server to show that it fulfils a rule.
type Case struct {
	// Provider is the provider in the document.
	Provider string `yaml:"provider"`
	// Server is the server at which base_url points; empty for the provider's own address.
	Server string `yaml:"server"`
	// Model is the model_id.
	Model string `yaml:"model"`
	// API is the key api of the document.
	API string `yaml:"api"`
	// Scenario is what the model answers.
	Scenario string `yaml:"scenario"`
	// Params are the inference_params.
	Params map[string]any `yaml:"params"`
	// Tools declares the tool find_order.
	Tools bool `yaml:"tools"`
	// Schema requires an answer of a form.
	Schema bool `yaml:"schema"`
	// Turns is the number of messages of the user; 1 is the default.
	Turns int `yaml:"turns"`
	// After names what happens between the steps; see the interruptions of the tests.
	After string `yaml:"after"`
	// Image lets the tool return an image.
	Image bool `yaml:"image"`
	// Invalid is whether the document sets what the provider refuses: the user must see the error of the provider.
	Invalid bool `yaml:"invalid"`
	// NoCalls forbids further calls after the results of the first ones.
	NoCalls bool `yaml:"no_calls"`
	// Retries lets the client send a request that is refused, and then another form of it.
	Retries bool `yaml:"retries"`
	// Expect is what the caller gets.
	Expect Expect `yaml:"expect"`
}

// Expect is what the caller of a client gets.
type Expect struct {
	// Text is the text of the last answer; empty to accept any.
	Text string `yaml:"text"`
	// Starts is how the text begins.
	Starts string `yaml:"starts"`
	// Has is a part of the text.
	Has string `yaml:"has"`
	// Error is a part of the error with which the conversation ends; empty if it must succeed.
	Error string `yaml:"error"`
	// Finish is why the last answer ended.
	Finish string `yaml:"finish"`
	// Input, Cached, CacheWrite and Output are the usage of the last answer; 0 to accept any.
	Input int `yaml:"input"`
	// Cached are tokens read from the prompt cache.
	Cached int `yaml:"cached"`
	// CacheWrite are tokens written to it.
	CacheWrite int `yaml:"cache_write"`
	// Output are the tokens of the answer.
	Output int `yaml:"output"`
}

// Book is the content of rules.yaml.
type Book struct {
	// Servers are the simulated servers.
	Servers []Server `yaml:"servers"`
	// Reasoning is when models reason; the first row that matches counts.
	Reasoning []Reasoning `yaml:"reasoning"`
	// Models are the models that are listed.
	Models []Model `yaml:"models"`
	// Rules are the rules; the first one that a request breaks is the answer.
	Rules []Rule `yaml:"rules"`
}

//go:embed rules.yaml
var rulesFile []byte

// Rules returns the rules and the servers.
var Rules = sync.OnceValue(func() *Book {
	b, err := readBook(rulesFile)
	if err != nil {
		panic(fmt.Sprintf("rules.yaml: %v", err)) // the file is a part of the program, and a test reads it
	}
	return b
})

// readBook reads rules.yaml.
func readBook(raw []byte) (*Book, error) {
	b := &Book{}
	if err := yaml.Load(raw, b, yaml.WithKnownFields()); err != nil {
		return nil, err
	}
	for i := range b.Reasoning {
		var err error
		if b.Reasoning[i].models, err = wholeName(b.Reasoning[i].Models); err != nil {
			return nil, err
		}
	}
	for i := range b.Rules {
		r := &b.Rules[i]
		var err error
		if r.models, err = wholeName(r.Models); err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.ID, err)
		}
		if r.Check.Name != "" && checks()[r.Check.Name] == nil {
			return nil, fmt.Errorf("rule %s: no check %q", r.ID, r.Check.Name)
		}
	}
	return b, nil
}

// wholeName compiles a pattern for the name of a model. What providers put around a name is not a part of it:
// the publisher, the region and the vendor before, a date, @date and -v1:0 after it.
func wholeName(pattern string) (*regexp.Regexp, error) {
	if pattern == "" {
		return regexp.MustCompile(""), nil
	}
	if strings.HasPrefix(pattern, "^") {
		return regexp.Compile(pattern)
	}
	return regexp.Compile(`^(?:[\w-]+/)*(?:[a-z-]+\.)*(?:` + pattern + `)(?:-\d{4}-?\d{2}-?\d{2}|@\w+)?(?:-v\d+(?::\d+)?)?$`)
}

// server returns the server of a name.
func (b *Book) server(name string) (Server, bool) {
	i := slices.IndexFunc(b.Servers, func(s Server) bool { return s.Name == name })
	if i < 0 {
		return Server{}, false
	}
	return b.Servers[i], true
}

// reasons reports whether the model of a request reasons.
func (b *Book) reasons(c *conversation) bool {
	for _, r := range b.Reasoning {
		if !slices.Contains(r.Wires, c.wire.name) || len(r.Servers) > 0 && !slices.Contains(r.Servers, c.server.Name) || !r.models.MatchString(c.model) {
			continue
		}
		for _, field := range c.wire.effort {
			if v := c.body.at(field); v.exists() {
				return !slices.Contains(r.Off, v.text())
			}
		}
		return r.Default
	}
	return false
}

// IsAbout reports whether a model of this name is one that the rule is about.
func (r *Rule) IsAbout(model string) bool { return r.models.MatchString(model) }

// matches reports whether a request is one that the rule is about.
func (r *Rule) matches(c *conversation) bool {
	return slices.Contains(r.Wires, c.wire.name) && (len(r.Servers) == 0 || slices.Contains(r.Servers, c.server.Name)) && r.models.MatchString(c.model) &&
		!slices.ContainsFunc(r.When, func(w Condition) bool { return !w.holds(c) })
}

func (w Condition) holds(c *conversation) bool {
	v := c.body.at(w.Field)
	value := v.text()
	if !v.exists() {
		value = w.Default
	}
	if w.Header != "" {
		value = c.header.Get(w.Header)
	}
	switch {
	case w.Present != nil && *w.Present != v.exists(),
		w.In != nil && !slices.Contains(w.In, value),
		w.Not != nil && slices.Contains(w.Not, value),
		w.Reasoning != nil && *w.Reasoning != c.reasons,
		w.Lacks != "" && hasBeta(c.header, w.Lacks):
		return false
	}
	return true
}

// hasBeta reports whether a request asks for a beta feature of Anthropic.
func hasBeta(h http.Header, name string) bool {
	for _, v := range h.Values("anthropic-beta") {
		for one := range strings.SplitSeq(v, ",") {
			if strings.TrimSpace(one) == name {
				return true
			}
		}
	}
	return false
}
