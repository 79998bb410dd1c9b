// Package evalset makes an application of prompts and models, and its evaluation, of which files of other systems for evaluations consist.
package evalset

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// Prompt is what a model gets: texts with places {{name}}.
type Prompt struct {
	Label  string
	System string
	User   string
	At     *input.Node // for messages; nil for the file
}

// Set is what is converted.
type Set struct {
	*input.Report
	App        *document.App
	IDs        *document.IDs
	Evaluation *document.Evaluation
	Prompts    []Prompt
	Models     []Model
	Nested     bool // a place such as {{a.b}} is a column

	names    map[string]string // ids of variables by their names in the file
	order    []string          // ids of inputs
	judge    string            // the id of the model that judges
	labels   [][]string        // of judges
	embedder string
}

// Model is a model that is evaluated.
type Model struct {
	ID    string // of the model in the document
	Label string // of the variant
}

// New returns an empty set.
func New(r *input.Report, id string) *Set {
	s := &Set{Report: r, App: &document.App{ID: id}, IDs: document.NewIDs(id), Evaluation: &document.Evaluation{}, names: map[string]string{}}
	delete(s.IDs.Taken, "question") // no other flow has variables of these names
	delete(s.IDs.Taken, "query")
	return s
}

// Variable returns the id of a variable of the rows.
func (s *Set) Variable(name string) string {
	if s.names[name] == "" {
		s.names[name] = s.IDs.New(strings.NewReplacer("-", "_", ".", "_").Replace(name), "value")
	}
	return s.names[name]
}

var place = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)\{\{-?\s*(.*?)\s*-?\}\}|\{%.*?%\}|\{#.*?#\}`) })

// Fill replaces the places of a text by values, of a row. It reports whether all of them have one.
func Fill(text string, of func(name string) (string, bool)) (filled string, ok bool) {
	ok = true
	filled = place().ReplaceAllStringFunc(text, func(whole string) string {
		m := place().FindStringSubmatch(whole)
		if v, known := of(m[1]); m[1] != "" && known {
			return v
		}
		ok = ok && strings.HasPrefix(whole, "{#")
		return ""
	})
	return filled, ok
}

var isName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][\w.-]*$`) })

// Template returns the template of QType for a text with places; n is the value for messages. The names of the places become inputs.
func (s *Set) Template(text string, n *input.Node) string {
	var b strings.Builder
	at := 0
	literal := func(t string) { b.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(t)) }
	for _, m := range place().FindAllStringSubmatchIndex(text, -1) {
		literal(text[at:m[0]])
		at = m[1]
		whole := text[m[0]:m[1]]
		if m[2] >= 0 && isName().MatchString(text[m[2]:m[3]]) && (s.Nested || !strings.Contains(text[m[2]:m[3]], ".")) {
			id := s.Variable(text[m[2]:m[3]])
			if !slices.Contains(s.order, id) {
				s.order = append(s.order, id)
			}
			b.WriteString("{" + id + "}")
			continue
		}
		if !strings.HasPrefix(whole, "{#") {
			s.Unsupported(n, "the expression %s of a prompt is not converted; it stays in the text", document.OneLine(whole))
			literal(whole)
		}
	}
	literal(text[at:])
	return b.String()
}

// Judge returns the id of the model that judges; n is the place that needs it, provider and name may be empty.
func (s *Set) Judge(n *input.Node, provider, name string) string {
	if s.judge == "" {
		if name == "" {
			s.Assumed(n, "the file does not name the model that judges; the document has %s", document.SuggestedModel("openai"))
		}
		block, _ := document.NewModel(s.IDs.New("judge", "judge"), cmp.Or(name, document.SuggestedModel("openai")))
		if provider != "" && provider != "openai" {
			block.SetProvider(provider)
		}
		s.App.Models = append(s.App.Models, block)
		s.judge, _ = block.Entries[1].Value.(string)
	}
	return s.judge
}

// Labels declares the labels of a judge, the best first.
func (s *Set) Labels(good, bad []string) *document.Block {
	b := &document.Block{Inline: true}
	for _, l := range good {
		b.Set(l, 1)
	}
	for _, l := range bad {
		if !slices.Contains(good, l) {
			b.Set(l, 0)
		}
	}
	if len(good) > 0 && !slices.ContainsFunc(s.labels, func(set []string) bool { return set[0] == good[0] }) {
		s.labels = append(s.labels, good)
	}
	return b
}

// Embedder returns the id of the embedding model.
func (s *Set) Embedder() string {
	if s.embedder == "" {
		s.embedder = s.IDs.New("embedder", "embedder")
		mock := s.IDs.New("practice_embedder", "practice_embedder")
		s.App.Models = append(s.App.Models,
			new(document.Block).Set("type", "EmbeddingModel").Set("id", s.embedder).Set("provider", "openai").
				Note("Needs OPENAI_API_KEY.").Set("model_id", "text-embedding-3-small").Set("dimensions", 1536).Set("offline", mock),
			new(document.Block).Set("type", "EmbeddingModel").Set("id", mock).Set("provider", "mock").Set("dimensions", 1536))
	}
	return s.embedder
}

// Keys makes the keys of a metric: pairs of a key and a value.
func Keys(pairs ...any) *document.Block {
	b := new(document.Block)
	for i := 0; i+1 < len(pairs); i += 2 {
		key, _ := pairs[i].(string)
		b.Set(key, pairs[i+1])
	}
	return b
}

// Finish adds the flow, and the variants. n is the place for messages.
func (s *Set) Finish(n *input.Node) *document.App {
	if len(s.Prompts) == 0 {
		s.Prompts = []Prompt{{User: "{{prompt}}"}}
		s.Assumed(n, "the file has no prompt that could be converted; rows need a column prompt")
	}
	if len(s.Models) == 0 {
		id, _ := s.App.ModelFor(s.IDs, "openai", "", nil)
		s.Models = []Model{{ID: id}}
		s.Assumed(n, "the file names no model that could be converted; the document has %s", document.SuggestedModel("openai"))
	}
	ask, answer := s.IDs.New("ask", "ask"), s.IDs.New("respond", "respond")
	text := &document.Type{Kind: document.Text, Declared: true}
	var templates []string
	for i, p := range s.Prompts {
		at := cmp.Or(p.At, n)
		if strings.Contains(p.System, "{{") { // a system message has no places
			s.Prompts[i].User, s.Prompts[i].System = p.System+"\n\n"+p.User, ""
			s.Assumed(at, "a system message contains values; it precedes the message of the user here")
		}
		templates = append(templates, s.Template(s.Prompts[i].User, at))
	}
	system := s.Prompts[0].System
	f := &document.Flow{ID: s.IDs.New("main", "main"), Types: func(string) *document.Type { return text },
		Inputs: slices.Clone(s.order), Outputs: []string{"answer"}}
	template := new(document.Block).Set("type", "PromptTemplate").Set("id", ask).Set("template", templates[0])
	if len(s.order) > 0 {
		template.Set("inputs", document.NameList(s.order))
	}
	call := new(document.Block).Set("type", "LLMInference").Set("id", answer).Set("model", s.Models[0].ID)
	if system != "" {
		call.Set("system_message", system)
	}
	f.Steps = []*document.Step{{Block: template.Set("outputs", document.NameList{"prompt"}), Reads: f.Inputs, Writes: []string{"prompt"}},
		{Block: call.Set("inputs", document.NameList{"prompt"}).Set("outputs", document.NameList{"answer"}),
			Reads: []string{"prompt"}, Writes: []string{"answer"}}}
	s.App.Flows = []*document.Flow{f}
	s.variants(ask, answer, templates)
	s.App.Practice(s.IDs, s.judge, s.labels)
	if len(s.Evaluation.Rows) == 0 {
		s.Assumed(n, "the file has no row that could be converted; one empty row was written")
		s.Evaluation.Rows = []map[string]any{{}}
	}
	for _, row := range s.Evaluation.Rows {
		for _, id := range s.order {
			if _, given := row[id]; !given {
				row[id] = ""
			}
		}
	}
	s.App.Evaluation = s.Evaluation
	return s.App
}

// variants adds one for each prompt and model.
func (s *Set) variants(ask, answer string, templates []string) {
	ids := document.IDs{Taken: map[string]bool{}}
	for i, p := range s.Prompts {
		for j, m := range s.Models {
			name := strings.Trim(m.Label+" "+p.Label, " ")
			if len(s.Prompts) > 1 && p.Label == "" {
				name = fmt.Sprintf("%s prompt %d", m.Label, i+1)
			}
			v := new(document.Block).Set("id", ids.New(name, "base"))
			if j > 0 {
				v.Set("models", Keys(s.Models[0].ID, m.ID))
			}
			if i > 0 {
				v.Set("prompts", Keys(ask, templates[i], answer, p.System))
			}
			s.Evaluation.Variants = append(s.Evaluation.Variants, v)
		}
	}
}

// Text returns a value as it is put in a prompt: a text, or JSON.
func Text(n *input.Node) string {
	if n == nil || n.Kind == input.Null {
		return ""
	}
	if n.Kind < input.List {
		return n.Text
	}
	return JSON(n)
}

// JSON returns a value as JSON.
func JSON(n *input.Node) string {
	switch n.Kind {
	case input.List:
		var parts []string
		for _, item := range n.Items {
			parts = append(parts, JSON(item))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case input.Map:
		var parts []string
		for _, p := range n.Pairs {
			parts = append(parts, quoted(p.Key)+":"+JSON(p.Value))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case input.Text:
		return quoted(n.Text)
	case input.Null:
		return "null"
	}
	return strings.ToLower(n.Text)
}

// Value returns a value for the document.
func Value(n *input.Node) any {
	switch n.Kind {
	case input.List:
		all := []any{}
		for _, item := range n.Items {
			all = append(all, Value(item))
		}
		return all
	case input.Map:
		b := &document.Block{Inline: true}
		for _, p := range n.Pairs {
			b.Set(p.Key, Value(p.Value))
		}
		return b
	case input.Text:
		return n.Text
	case input.Null:
		return document.Number("null")
	}
	return document.Number(n.Text)
}

// quoted returns a text as JSON.
func quoted(text string) string {
	b, _ := json.Marshal(text) // a text can always be encoded
	return string(b)
}
