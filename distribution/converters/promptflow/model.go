package promptflow

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/spec/source"
)

// The parameters of an llm node that its template does not read: those of the request,
// and those that name the model.
var (
	requestParameters = []string{"temperature", "top_p", "max_tokens", "max_completion_tokens", "presence_penalty", "frequency_penalty", "seed", "stop"}
	modelParameters   = []string{"deployment_name", "model"}
	otherParameters   = []string{"response_format", "tools", "tool_choice", "functions", "function_call", "logit_bias", "user", "n", "best_of", "echo", "logprobs", "suffix", "stream"}
)

// callModel adds the steps of an llm node.
func (c *conversion) callModel(n *input.Node, name string) {
	file := c.sourceOf(n, name)
	if file == nil {
		return
	}
	if c.Text(n, "connection") != "" {
		c.Assumed(n.Get("connection"), "node %s: the connection is not in the file; the key is that of the environment", name)
	}
	var values []input.Pair
	for _, p := range c.parameters(n) {
		switch {
		case slices.Contains(requestParameters, p.Key), slices.Contains(modelParameters, p.Key):
		case p.Key == "response_format" && p.Value.Get("type").Scalar() == "text":
		case slices.Contains(otherParameters, p.Key):
			if p.Value.Kind != input.Null && (p.Value.Kind >= input.List || p.Value.Scalar() != "") {
				c.Unsupported(p.Value, "node %s: %s is not converted", name, p.Key)
			}
		default:
			values = append(values, p)
		}
	}
	chat := c.isChat(n)
	model := c.model(modelSettings{azure: n.Get("provider").Scalar() != "OpenAI", parameters: n.Get("inputs"), at: n})
	c.answer(name, model, c.parse(file, 0, c.historyName(values)), values, file, chat)
}

// isChat reports whether the messages of a template are those of a chat.
func (c *conversion) isChat(n *input.Node) bool {
	api := c.Text(n, "api")
	if api != "" && api != "chat" && api != "completion" {
		c.Malformed(n.Get("api"), "api must be chat or completion, not %q", api)
	}
	return api != "completion"
}

// unread reports values that no template reads.
func (c *conversion) unread(name string, values []input.Pair, parts []part) {
	for _, v := range values {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == v.Key }) {
			v.Value.Use()
			c.Ignored(v.KeySpan, "%s: the template does not read %s", name, v.Key)
		}
	}
}

// historyName returns the name that a template has for the conversation.
func (c *conversion) historyName(values []input.Pair) string {
	for _, p := range values {
		if of, _ := reference(p.Value.Scalar()); c.history != "" && of == "inputs."+c.history {
			return p.Key
		}
	}
	return ""
}

// answer adds the call of a model with the messages of a template.
func (c *conversion) answer(name, model string, t template, values []input.Pair, file *source.File, chat bool) {
	system, user := c.messages(t, file, chat)
	read := slices.Concat(system, user)
	for _, s := range t.sections {
		read = append(read, s.parts...)
	}
	c.unread(name, slices.DeleteFunc(slices.Clone(values), func(p input.Pair) bool { return t.history && p.Key == c.historyName(values) }), read)
	b := new(document.Block).Set("type", "LLMInference").Set("id", c.ids.New(name, "answer")).Set("model", model)
	if len(c.clients) > 0 {
		b.Entries[0].Value = "Agent"
		b.Set("tools", c.clients)
	}
	if t.history {
		b.Set("memory", c.declareMemory())
	}
	if hasValues(system) {
		c.Add(input.Assumed.At(input.Bytes(file, system[slices.IndexFunc(system, part.isValue)].at, 1), "the system message contains values; it precedes the message of the user here"))
		user = append(append(system, part{text: "\n\n"}), user...)
	} else if text := literal(system); text != "" {
		b.Set("system_message", text)
	}
	text, reads := c.bind(user, values, file)
	var prompt string
	if len(user) == 1 && user[0].isValue() && len(reads) == 1 && c.types[reads[0]].Kind == document.Text {
		prompt = reads[0] // the message is the value itself
	} else {
		prompt = c.variable(name+" prompt", name+"_prompt", &document.Type{Kind: document.Text, Declared: true})
		c.addTemplate(name, text, reads, prompt)
	}
	id := c.result(name, &document.Type{Kind: document.Text, Declared: true})
	c.addStep(b.Set("inputs", document.NameList{prompt}).Set("outputs", document.NameList{id}), []string{prompt}, []string{id})
}

// messages returns the system message of a template and the message of the user.
func (c *conversion) messages(t template, file *source.File, chat bool) (system, user []part) {
	if !chat {
		for _, s := range t.sections {
			if s.role != "" {
				user = append(user, part{text: s.marker})
			}
			user = append(user, s.parts...)
		}
		return nil, user
	}
	last := len(t.sections) - 1
	for i, s := range t.sections {
		switch {
		case i == last && s.role != "system" && s.role != "developer":
			user = s.parts
		case s.role == "system" || s.role == "developer":
			system = appendSection(system, "", s.parts)
		case hasValues(s.parts):
			c.Add(input.Unsupported.At(input.Bytes(file, s.at, 1), "a message of the role %s with values, before the last message, is not converted", cmp.Or(s.role, "user")))
		case literal(s.parts) != "":
			c.Add(input.Unsupported.At(input.Bytes(file, s.at, 1), "an example of a message of the role %s becomes part of the system message", cmp.Or(s.role, "user")))
			system = appendSection(system, s.role+": ", s.parts)
		}
	}
	return system, user
}

// appendSection adds the text of a message after an empty line.
func appendSection(all []part, before string, parts []part) []part {
	if len(all) > 0 {
		before = "\n\n" + before
	}
	if before != "" {
		all = append(all, part{text: before})
	}
	return append(all, parts...)
}

// declareMemory returns the memory of the conversation.
func (c *conversion) declareMemory() string {
	if c.memory == "" {
		c.memory = c.ids.New(c.history, "chat_history")
		c.app.Memories = append(c.app.Memories, new(document.Block).Set("id", c.memory).Set("policy", "unbounded").
			Note("Prompt flow sends the whole conversation; a limit such as `policy: token_window` bounds it."))
	}
	return c.memory
}

// modelSettings is what names a model.
type modelSettings struct {
	azure      bool
	provider   *input.Node // if the file names it; else the name of the model implies it
	version    string      // of the API of Azure; may be empty
	parameters *input.Node // of the request
	name       string      // if it is not one of the parameters
	endpoint   string      // of Azure; empty for that of the environment
	at         *input.Node // for messages
}

// model returns the id of a model.
func (c *conversion) model(s modelSettings) string { //nolint:cyclop // one case for each setting
	name := s.name
	for _, key := range modelParameters {
		name = cmp.Or(name, s.parameters.Get(key).Scalar())
	}
	if name == "" {
		name = document.SuggestedModel("openai")
		c.Assumed(s.at, "no model is named; using %s", name)
	}
	parameters := &document.Block{Inline: true}
	for _, key := range requestParameters {
		v := s.parameters.Get(key)
		if v == nil || v.Text == "" && v.Kind != input.List {
			continue
		}
		switch _, notNumber := strconv.ParseFloat(v.Text, 64); {
		case modelparams.IsNumber(key) && notNumber != nil:
			c.Malformed(v, "%s must be a number, not %s", key, v.Describe())
		case v.Kind == input.Int || v.Kind == input.Float:
			parameters.Set(key, document.Number(v.Text))
		case v.Kind == input.Text:
			parameters.Set(key, v.Text)
		case v.Kind == input.List:
			var texts document.NameList
			for _, item := range v.Elements() {
				texts = append(texts, item.Scalar())
			}
			parameters.Set(key, texts)
		default:
			c.Malformed(v, "%s must be a number or a text, not %s", key, v.Describe())
		}
	}
	key := strings.Join([]string{name, s.endpoint, s.parameters.Only(requestParameters).Fingerprint()}, "\x00")
	if id := c.models[key]; id != "" {
		return id
	}
	b, _ := document.NewModel(c.ids.New(name, "assistant"), name)
	if p := s.provider.Scalar(); p != "" && !s.azure && !b.SetProvider(strings.ToLower(p)) {
		c.Unsupported(s.provider, "the provider %s has no counterpart; that of the document is a guess by the name of the model", p)
	}
	if s.azure {
		b = new(document.Block).Set("type", "Model").Set("id", b.Entries[1].Value).Set("provider", "azure-openai").Note("Needs AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY.").Set("model_id", name)
		if s.endpoint != "" && s.endpoint != "${AZURE_OPENAI_ENDPOINT}" && // which is the default
			(strings.Contains(s.endpoint, "${") || c.IsAddress(s.at.Mark(), s.endpoint)) {
			b.Set("base_url", document.EnvText(s.endpoint))
		}
		if s.version != "" {
			b.Set("api_version", s.version)
		}
	}
	if len(parameters.Entries) > 0 {
		b.Set("inference_params", parameters)
	}
	c.app.Models = append(c.app.Models, b)
	c.models[key], _ = b.Entries[1].Value.(string)
	return c.models[key]
}
