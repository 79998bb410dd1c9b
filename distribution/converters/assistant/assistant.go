// Package assistant builds documents from programs that call chat models: models, memories,
// tools, and flows that answer a message or fill a prompt.
package assistant

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/source"
)

// Builder collects the parts of a document.
type Builder struct {
	*input.Report
	App   *document.App
	ids   *document.IDs
	tools map[string]string // ids of tools by their names
	used  map[string]bool   // ids of models, memories and tools

	variables map[string]bool // ids of variables, which flows share
}

// NewBuilder returns a builder of an application.
func NewBuilder(r *input.Report, id string) *Builder {
	b := &Builder{Report: r, App: &document.App{ID: id}, ids: document.NewIDs(id), tools: map[string]string{}, used: map[string]bool{}, variables: map[string]bool{}}
	for _, id := range []string{"question", "query", "answer", "prompt"} {
		b.variables[id] = true
	}
	return b
}

// variable returns an id for a variable of a flow that is not that of an entity; local has the flow's.
func (b *Builder) variable(local *document.IDs, name, fallback string) string {
	for {
		if id := local.New(name, fallback); b.variables[id] || !b.ids.Taken[id] {
			b.variables[id], b.ids.Taken[id] = true, true
			return id
		}
	}
}

// Model is a chat model of a program.
type Model struct {
	Name       string // the variable or method of the program
	Provider   string // as in documents
	ID         string // the provider's name of the model; empty if the program does not say
	BaseURL    string
	Parameters *document.Block // of requests; may be nil
	Timeout    string          // of a request, as in documents; empty for the default
	Retries    int             // of a failed request, after the first one; -1 for the default
	At         source.Span
}

// Model declares a model and returns its id.
func (b *Builder) Model(m Model) string {
	if m.ID == "" {
		m.ID = document.SuggestedModel(m.Provider)
		b.Add(input.Assumed.At(m.At, "no model is named; using %s", m.ID))
	}
	id := b.ids.New(cmp.Or(m.Name, m.ID), "assistant")
	block := new(document.Block).Set("type", "Model").Set("id", id).Set("provider", m.Provider).Set("model_id", m.ID)
	if m.BaseURL != "" && b.IsAddress(m.At, m.BaseURL) {
		block.Set("base_url", m.BaseURL)
	}
	if m.Parameters != nil && len(m.Parameters.Entries) > 0 {
		m.Parameters.Inline = true
		block.Set("inference_params", m.Parameters)
	}
	if m.Timeout != "" {
		block.Set("timeout", m.Timeout)
	}
	if m.Retries >= 0 {
		block.Set("retry", (&document.Block{Inline: true}).Set("max_attempts", m.Retries+1))
	}
	b.App.Models = append(b.App.Models, block)
	return id
}

// AnyModel returns the id of the first model, and declares one if there is none.
func (b *Builder) AnyModel(at source.Span) string {
	if len(b.App.Models) > 0 {
		id, _ := b.App.Models[0].Entries[1].Value.(string)
		return id
	}
	return b.Model(Model{Name: "assistant", Provider: "openai", At: at, Retries: -1})
}

// Memory is the memory of a conversation.
type Memory struct {
	Name        string // the variable or method of the program
	MaxMessages int    // 0 for no limit
	MaxTokens   int    // 0 for no limit
	Note        string // a comment; may be empty
}

// Memory declares a memory and returns its id.
func (b *Builder) Memory(m Memory) string {
	id := b.ids.New(m.Name, "memory")
	block := new(document.Block).Set("id", id)
	switch {
	case m.MaxTokens > 0:
		block.Set("policy", "token_window").Set("max_tokens", m.MaxTokens)
	case m.MaxMessages > 0:
		block.Set("policy", "message_window").Set("max_messages", m.MaxMessages)
	default:
		block.Set("policy", "unbounded")
	}
	if m.Note != "" {
		block.Note("%s", document.OneLine(m.Note))
	}
	b.App.Memories = append(b.App.Memories, block)
	return id
}

// Variable is a value with a name.
type Variable struct {
	Name        string
	Kind        document.Kind
	Optional    bool   // of tools only
	Description string // of tools only; may be empty
}

// Tool is a function that a model may call.
type Tool struct {
	Name, Description string
	Module            string // of a Python function; empty for a tool that the caller answers
	Inputs            []Variable
	Result            document.Kind
}

// Tool declares a tool, once for each name, and returns its id.
func (b *Builder) Tool(t Tool) string {
	if id := b.tools[t.Name]; id != "" {
		return id
	}
	id := b.ids.New(t.Name, "tool")
	block := new(document.Block)
	if t.Module != "" {
		block.Set("type", "PythonFunctionTool").Set("id", id).Set("name", t.Name)
	} else {
		block.Set("type", "ClientTool").Note("Answered at the terminal, or by --client-tool %s=COMMAND.", id).Set("id", id).Set("name", id)
	}
	about := cmp.Or(t.Description, "The function "+t.Name+".")
	for _, v := range t.Inputs {
		if v.Description != "" {
			about += "\n" + v.Name + ": " + v.Description
		}
	}
	block.Set("description", about)
	if t.Module != "" {
		block.Set("function_name", t.Name).Set("module_path", t.Module)
	}
	var inputs []*document.Block
	for _, v := range t.Inputs {
		inputs = append(inputs, declare(v.Name, &document.Type{Kind: v.Kind, Optional: v.Optional}))
	}
	if len(inputs) > 0 {
		block.Set("inputs", inputs)
	}
	b.App.Tools = append(b.App.Tools, block.Set("outputs", []*document.Block{declare("result", &document.Type{Kind: t.Result})}))
	b.tools[t.Name] = id
	return id
}

func declare(id string, of *document.Type) *document.Block {
	return (&document.Block{Inline: true}).Set("id", id).Set("type", of.Text())
}

// Answer is a call of a model with a message.
type Answer struct {
	Name                  string
	Model, Memory, System string         // ids, and a text
	Tools                 []string       // ids
	MaxSteps              int            // of tools; 0 for the default
	Prompt                string         // the message, in which {{name}} is a value; empty if it is the only input
	Values                []Variable     // of the prompt and the system message
	Output                string         // the name of the answer; empty for the default
	Result                *document.Type // of the answer; nil for a text
	At                    source.Span
}

// Answer adds a flow that answers. It is conversational if its input is the message.
func (b *Builder) Answer(a Answer) {
	f := &document.Flow{ID: b.ids.New(a.Name, "chat")}
	for _, id := range append([]string{a.Model, a.Memory}, a.Tools...) {
		b.used[id] = true
	}
	step := new(document.Block).Set("type", "LLMInference")
	if len(a.Tools) > 0 || a.Result != nil {
		step = new(document.Block).Set("type", "Agent")
	}
	step.Set("id", b.ids.New(f.ID+"_answer", "answer")).Set("model", a.Model)
	if a.Memory != "" {
		step.Set("memory", a.Memory)
	}
	if placeholder().MatchString(a.System) && a.Prompt != "" {
		b.Add(input.Assumed.At(a.At, "%s: the system message contains values; it precedes the message of the user here", a.Name))
		a.Prompt = a.System + "\n\n" + a.Prompt
		a.System = ""
	}
	if a.System != "" {
		step.Set("system_message", a.System)
	}
	if len(a.Tools) > 0 {
		var unique []string // a program may name a tool twice
		for _, id := range a.Tools {
			if !slices.Contains(unique, id) {
				unique = append(unique, id)
			}
		}
		step.Set("tools", document.NameList(unique))
		if a.MaxSteps > 0 {
			step.Set("max_tool_executions", a.MaxSteps)
		}
	}
	if a.Prompt == "" {
		message := &document.Type{Kind: document.Message, Declared: true}
		f.Types = func(string) *document.Type { return message }
		f.Inputs, f.Outputs, f.Conversational = []string{"question"}, []string{"answer"}, a.Result == nil
	} else {
		b.fill(f, a)
	}
	prompt := f.Inputs
	if len(f.Steps) > 0 {
		prompt = f.Steps[0].Writes
	}
	writes := b.resultOf(f, a)
	step.Set("inputs", document.NameList(prompt)).Set("outputs", document.NameList(writes))
	f.Steps = append(f.Steps, &document.Step{Block: step, Reads: prompt, Writes: writes})
	if !slices.Equal(writes, f.Outputs) {
		take := new(document.Block).Set("type", "Transform").Set("id", b.ids.New(f.ID+"_value", "value")).
			Set("set", new(document.Block).Set(f.Outputs[0], document.Expression(writes[0]+".value")))
		f.Steps = append(f.Steps, &document.Step{Block: take, Reads: writes, Writes: f.Outputs})
	}
	b.App.Flows = append(b.App.Flows, f)
}

// resultOf returns the variable that the model writes: the answer, or a record with it, as models
// answer with a text or a record.
func (b *Builder) resultOf(f *document.Flow, a Answer) []string {
	if a.Result == nil {
		return f.Outputs
	}
	before, answer := f.Types, f.Outputs[0]
	result, written := a.Result, answer
	if result.Kind != document.Record {
		written = b.variable(document.NewIDs(""), answer+"_record", "record")
		result = b.Record(f.ID+"_result", "", []*document.Field{{Name: "value", Type: a.Result}})
	}
	f.Types = func(id string) *document.Type {
		switch id {
		case written:
			return result
		case answer:
			return a.Result
		}
		return before(id)
	}
	return []string{written}
}

// Record declares a custom type.
func (b *Builder) Record(name, description string, fields []*document.Field) *document.Type {
	t := &document.Type{Kind: document.Record, Declared: true, Name: b.ids.New(name, "Record"), Description: description, Fields: fields}
	b.App.CustomTypes = append(b.App.CustomTypes, t)
	return t
}

// placeholder matches a value in a prompt.
var placeholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`) })

// fill adds the step that makes the message from a prompt.
func (b *Builder) fill(f *document.Flow, a Answer) {
	types := map[string]*document.Type{}
	ids := map[string]string{}
	local := document.NewIDs("")
	for _, id := range []string{"question", "query", "answer"} {
		delete(local.Taken, id)
	}
	for _, v := range a.Values {
		id := b.variable(local, strings.NewReplacer("-", "_", ".", "_").Replace(v.Name), "value")
		ids[v.Name], types[id] = id, &document.Type{Kind: v.Kind, Declared: true}
		f.Inputs = append(f.Inputs, id)
	}
	var text strings.Builder
	var reads []string
	at := 0
	for _, m := range placeholder().FindAllStringSubmatchIndex(a.Prompt, -1) {
		text.WriteString(escape(a.Prompt[at:m[0]]))
		at = m[1]
		name := a.Prompt[m[2]:m[3]]
		if ids[name] == "" {
			b.Add(input.Malformed.At(a.At, "%s: the prompt contains {{%s}}, which is not a parameter", a.Name, name))
			text.WriteString(escape(a.Prompt[m[0]:m[1]]))
			continue
		}
		if !slices.Contains(reads, ids[name]) {
			reads = append(reads, ids[name])
		}
		text.WriteString("{" + ids[name] + "}")
	}
	text.WriteString(escape(a.Prompt[at:]))
	f.Inputs = slices.DeleteFunc(f.Inputs, func(id string) bool { return !slices.Contains(reads, id) })
	types["prompt"] = &document.Type{Kind: document.Text, Declared: true}
	output := b.variable(local, cmp.Or(a.Output, "answer"), "answer")
	types[output] = types["prompt"]
	f.Types, f.Outputs = func(id string) *document.Type { return types[id] }, []string{output}
	step := new(document.Block).Set("type", "PromptTemplate").Set("id", b.ids.New(f.ID+"_prompt", "fill")).Set("template", text.String())
	if len(reads) > 0 {
		step.Set("inputs", document.NameList(reads))
	}
	f.Steps = []*document.Step{{Block: step.Set("outputs", document.NameList{"prompt"}), Reads: reads, Writes: []string{"prompt"}}}
}

func escape(text string) string { return strings.NewReplacer("{", "{{", "}", "}}").Replace(text) }

// Finish returns the application, with a flow for each memory and model that no other one uses. It
// returns nil and reports that at a place if there is nothing to convert; what names the program.
func (b *Builder) Finish(what string, at source.Span) *document.App {
	for _, m := range b.App.Memories {
		if id, _ := m.Entries[0].Value.(string); !b.used[id] {
			b.Answer(Answer{Name: "chat", Model: b.AnyModel(at), Memory: id, At: at})
		}
	}
	for _, m := range b.App.Models {
		if id, _ := m.Entries[1].Value.(string); !b.used[id] {
			b.Answer(Answer{Name: "chat", Model: id, At: at})
		}
	}
	if len(b.App.Flows) == 0 {
		if !b.HasErrors() {
			b.Add(input.Malformed.At(at, "%s: no model, memory or prompt was found", what))
		}
		return nil
	}
	b.App.Tools = slices.DeleteFunc(b.App.Tools, func(t *document.Block) bool { // bound to a model that no flow calls
		id, _ := t.Entries[1].Value.(string)
		return !b.used[id]
	})
	document.AttachMock(b.App, b.ids)
	return b.App
}
