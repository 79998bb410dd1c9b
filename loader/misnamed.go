package loader

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// misnamedKey is a key that documents often have, because other systems or other parts of the
// language have it, and what is meant.
type misnamedKey struct {
	in   []reflect.Type // the structs in which it is misnamed; nil for every struct
	keys []string       // the keys as they are written
	key  string         // the key that is meant; empty if it is not a key of the same mapping
	hint string         // what to do, for a key that a different name does not correct; KEY is the written key
}

// misnamedValue is a value that is often written for a key with a fixed set of values.
type misnamedValue struct {
	key    string   // the key, or the name of the union for `type`
	values []string // the values as they are written, in lower case
	value  string   // the value that is meant; empty if the hint has more
	hint   string   // what to do; empty if the value is enough
}

func structs(samples ...any) []reflect.Type {
	types := make([]reflect.Type, len(samples))
	for i, s := range samples {
		types[i] = reflect.TypeOf(s)
	}
	return types
}

// misnamedKeys is the table of keys. The first row that fits decides.
func misnamedKeys() []misnamedKey {
	models, callers := structs(spec.Model{}, spec.EmbeddingModel{}), structs(spec.LLMInference{}, spec.Agent{})
	parameters := []string{"temperature", "max_tokens", "max_completion_tokens", "max_output_tokens", "top_p", "top_k", "stop", "seed",
		"frequency_penalty", "presence_penalty", "reasoning_effort", "logit_bias"}
	return []misnamedKey{
		{keys: []string{"name"}, key: "id"},
		{in: models, keys: parameters, hint: "write it under inference_params, which are sent to the provider: inference_params: {KEY: …}"},
		{in: callers, keys: parameters, hint: "it is a setting of the model: write it in the model, under inference_params"},
		{in: models, keys: []string{"model", "model_name", "name"}, key: "model_id"},
		{in: models, keys: []string{"url", "endpoint", "host", "api_base", "openai_api_base", "azure_endpoint"}, key: "base_url"},
		{in: models, keys: []string{"api_key", "apikey", "key", "token"}, hint: "declare an auth of type api_key under auths and name it here: auth: ID; or set the environment variable of the provider"},
		{in: models, keys: []string{"system_prompt", "system_message", "prompt"}, hint: "write system_message in the step that calls the model"},
		{in: callers, keys: []string{"system_prompt", "system", "instructions", "system_instruction"}, key: "system_message"},
		{in: callers, keys: []string{"llm", "chat_model", "model_name"}, key: "model"},
		{in: callers, keys: []string{"prompt", "prompt_template", "template", "user_message", "user_prompt"}, hint: "add a PromptTemplate step before this one, with the text as its template, and use its output as the input here"},
		{in: structs(spec.Agent{}), keys: []string{"max_iterations", "max_steps", "max_turns", "max_rounds", "max_tool_calls"}, key: "max_tool_executions"},
		{in: structs(spec.PromptTemplate{}), keys: []string{"prompt", "text", "content"}, key: "template"},
		{in: structs(spec.SwitchCase{}), keys: []string{"if", "condition", "case"}, key: "when"},
		{in: structs(spec.SwitchCase{}), keys: []string{"then", "do", "goto", "run"}, key: "flow"},
		{in: structs(spec.Switch{}), keys: []string{"default", "otherwise"}, key: "else"},
		{in: structs(spec.Loop{}), keys: []string{"while"}, hint: "until is the opposite condition: the loop ends when it is true"},
		{in: structs(spec.Loop{}), keys: []string{"times", "count", "limit"}, key: "max_iterations"},
		{in: structs(spec.Memory{}), keys: []string{"window", "window_size", "k", "last_n", "message_limit", "max_history", "history_size"}, hint: "limit it by a policy: max_messages with policy: message_window, n_rounds with round_window, max_tokens with token_window"},
		{in: structs(spec.Memory{}), keys: []string{"strategy", "eviction", "eviction_policy"}, key: "policy"},
		{in: structs(spec.APITool{}), keys: []string{"url", "uri", "path"}, key: "endpoint"},
		{in: structs(spec.APITool{}), keys: []string{"params", "args", "arguments"}, key: "inputs"},
		{in: structs(spec.CommandTool{}), keys: []string{"command", "cmd", "executable"}, key: "program"},
		{in: structs(spec.PythonFunctionTool{}), keys: []string{"module", "import"}, key: "module_path"},
		{in: structs(spec.PythonFunctionTool{}), keys: []string{"function"}, key: "function_name"},
		{in: structs(spec.LLMInference{}), keys: []string{"tools", "functions"}, hint: "a model calls tools in a step of type Agent: write type: Agent"},
		{in: callers, keys: []string{"messages", "history", "chat_history"}, hint: "earlier messages come from a memory: declare one under memories and name it here: memory: ID"},
		{in: callers, keys: []string{"response_format", "output_type", "output_schema", "schema"}, hint: "the output of an Agent may have a custom type, which is declared under types"},
		{in: structs(spec.Flow{}), keys: []string{"memory", "model", "tools", "system_message", "system_prompt", "prompt"}, hint: "write it in the steps that use it"},
		{in: structs(spec.Flow{}), keys: []string{"nodes", "tasks", "actions", "stages"}, key: "steps"},
		{in: structs(spec.Application{}), keys: []string{"steps", "inputs", "outputs", "variables", "interface"},
			hint: "it is a key of a flow: flows: - {id: …, KEY: …}"},
		{in: structs(spec.Application{}), keys: []string{"agents", "agent", "nodes", "tasks", "chains", "pipeline", "workflow", "workflows", "graph", "crew"},
			hint: "write the steps in a flow: flows: - {id: …, steps: […]}; an agent is a step of type Agent"},
		{in: structs(spec.Application{}), keys: []string{"version", "apiversion", "kind", "$schema"}, hint: "remove it: documents have no KEY"},
		{in: structs(spec.Application{}), keys: []string{"prompts", "templates"}, hint: "a template is a step of type PromptTemplate in a flow"},
		{in: structs(spec.CustomType{}), keys: []string{"fields", "attributes", "schema"}, key: "properties"},
		{in: structs(spec.Memory{}), keys: []string{"type", "backend", "provider", "storage", "path", "connection", "url"},
			hint: "conversations are kept in a store: declare one under stores and name it here: store: ID; without one they are in a file next to the document"},
		{in: structs(spec.SQLSource{}), keys: []string{"sql", "statement", "select"}, key: "query"},
		{in: structs(spec.SQLSource{}), keys: []string{"connection_string", "url", "dsn", "database"}, key: "connection"},
		{in: structs(spec.FileSource{}, spec.FileWriter{}), keys: []string{"file", "filename", "file_name", "file_path"}, key: "path"},
		{in: structs(spec.Variable{}), keys: []string{"default", "value"}, hint: "variables have no default: give the value as an input, or set it with a Transform step"},
		{in: structs(spec.Variable{}), keys: []string{"optional", "required"}, hint: "a ? at the end of the type makes a variable optional: type: text?"},
		{keys: []string{"input"}, key: "inputs"},
		{keys: []string{"output"}, key: "outputs"},
	}
}

// misnamedValues is the table of values. The base URLs are those of the services' own
// documentation of 2025.
func misnamedValues() []misnamedValue {
	compatible := func(url string, names ...string) misnamedValue {
		return misnamedValue{key: "provider", values: names, hint: "it has OpenAI's protocol: write provider: openai and base_url: " + url}
	}
	return []misnamedValue{
		{key: "provider", values: []string{"azure", "azure_openai", "azureopenai", "azure-ai"}, value: "azure-openai"},
		{key: "provider", values: []string{"bedrock", "aws", "amazon", "aws_bedrock", "amazon-bedrock"}, value: "aws-bedrock"},
		{key: "provider", values: []string{"vertex", "vertexai", "vertex-ai", "vertex_ai", "gcp", "google-vertex"}, value: "gcp-vertex"},
		{key: "provider", values: []string{"google", "gemini", "googleai", "google_ai", "google-genai"}, value: "google-ai"},
		{key: "provider", values: []string{"claude"}, value: "anthropic"},
		{key: "provider", values: []string{"gpt", "chatgpt", "open-ai", "open_ai"}, value: "openai"},
		{key: "provider", values: []string{"huggingface", "hugging-face", "hf"}, value: "langchaingo:huggingface"},
		{key: "provider", values: []string{"mistralai", "mistral-ai"}, value: "mistral"},
		{key: "provider", values: []string{"fake", "test", "dummy", "echo"}, value: "mock"},
		compatible("http://localhost:8000/v1", "vllm"), compatible("http://localhost:1234/v1", "lmstudio", "lm-studio", "lm_studio"),
		compatible("http://localhost:8080/v1", "llamacpp", "llama.cpp", "llama-cpp", "localai"),
		compatible("https://api.groq.com/openai/v1", "groq"), compatible("https://api.together.xyz/v1", "together", "togetherai"),
		compatible("https://openrouter.ai/api/v1", "openrouter"), compatible("https://api.deepseek.com/v1", "deepseek"),
		compatible("https://api.fireworks.ai/inference/v1", "fireworks"), compatible("https://api.x.ai/v1", "xai", "grok"),
		compatible("https://api.cohere.ai/compatibility/v1", "cohere"), compatible("the address of the proxy", "litellm"),
		{key: "step", values: []string{"llm", "chat", "completion", "llmcall", "generate", "chatcompletion"}, value: "LLMInference"},
		{key: "step", values: []string{"prompt", "template"}, value: "PromptTemplate"},
		{key: "step", values: []string{"if", "condition", "conditional", "branch", "router"}, value: "Switch"},
		{key: "step", values: []string{"tool", "toolcall", "calltool", "apitool", "function"}, value: "InvokeTool"},
		{key: "step", values: []string{"flow", "subflow", "callflow"}, value: "InvokeFlow"},
		{key: "step", values: []string{"embedding", "embed"}, value: "InvokeEmbedding"},
		{key: "step", values: []string{"http", "api", "rest", "request", "httprequest", "webhook", "apicall"},
			hint: "declare the server as an APITool under tools, and call it by a step of type InvokeTool"},
		{key: "step", values: []string{"sql", "database", "sqlquery"}, value: "SQLSource"},
		{key: "step", values: []string{"retriever", "retrieval", "rag", "search", "vectorstore"}, value: "VectorSearch"},
		{key: "step", values: []string{"parse", "parser", "json", "jsonparser", "outputparser"}, value: "Decoder"},
		{key: "step", values: []string{"start", "end", "input", "output", "print", "return"},
			hint: "remove it: the inputs and outputs of the flow name its variables"},
		{key: "step", values: []string{"foreach", "map", "for_each"}, hint: "Explode makes a row of each item of a list, Collect a list of the rows; Loop repeats a flow"},
		{key: "step", values: []string{"set", "assign", "python", "code"}, value: "Transform"},
		{key: "tool", values: []string{"api", "http", "rest", "openapi"}, value: "APITool"},
		{key: "tool", values: []string{"python", "function", "pythontool"}, value: "PythonFunctionTool"},
		{key: "tool", values: []string{"mcp"}, value: "MCPTool"},
		{key: "model", values: []string{"llm", "chat", "chatmodel", "generativemodel"}, value: "Model"},
		{key: "auth", values: []string{"apikey", "key", "api-key"}, value: "api_key"},
		{key: "auth", values: []string{"bearer", "token"}, value: "bearer_token"},
	}
}

// explainKey adds to the diagnostic of an unknown key what is probably meant, if a row of
// the table has it. n is the mapping, t its struct.
func explainKey(found diag.Diagnostic, n *node, key *node, t reflect.Type, p *plan) diag.Diagnostic {
	for _, m := range misnamedKeys() {
		if !slices.Contains(m.keys, strings.ToLower(key.text)) || m.in != nil && !slices.Contains(m.in, t) {
			continue
		}
		if _, known := p.byName[m.key]; m.key != "" && (!known || n.has(m.key)) {
			continue
		}
		found.Suggestion, found.Hint = "", ""
		found = found.WithoutFix()
		if m.key == "" {
			return found.WithHint("%s", strings.ReplaceAll(m.hint, "KEY", key.shown()))
		}
		return found.WithSuggestion(m.key).WithReplacement(key.text, m.key)
	}
	return found
}

// explainValue adds to the diagnostic of an unknown value what is probably meant, and
// reports whether a row of the table has it. Several meanings are possible, so that nothing
// is fixed.
func explainValue(found diag.Diagnostic, key, value string, known []string) (diag.Diagnostic, bool) {
	for _, m := range misnamedValues() {
		if m.key != key || !slices.Contains(m.values, strings.ToLower(value)) {
			continue
		}
		if m.value == "" {
			return found.WithHint("%s", m.hint), true
		}
		if slices.Contains(known, m.value) {
			return found.WithSuggestion(m.value), true
		}
	}
	return found, false
}

// fits reports whether a value can be decoded as a field, so that a fix that renames its key
// causes no diagnostic. In a list or a mapping there may be errors that are fixed as well.
func (d *decoder) fits(value pair, f *field, owner reflect.Type) bool {
	const most = 100 // diagnostics
	scratch := &decoder{diags: &diagnostics{limit: most, seen: map[string]bool{}}, builders: d.builders, plans: d.plans, unions: d.unions,
		declared: map[string]bool{}, inTool: d.inTool}
	scratch.decodeField(value, f, reflect.New(owner).Elem(), "")
	if value.value.kind != sequence && value.value.kind != mapping {
		return scratch.diags.raised == 0
	}
	return !slices.ContainsFunc(scratch.diags.list, func(found diag.Diagnostic) bool {
		return found.Severity == diag.Error && len(found.Fixes) == 0
	})
}

// The hints of this file are for values of the wrong kind whose form shows what is meant.

// listHint returns how to write a mapping as a list with items of a type.
func listHint(n *node, item reflect.Type) string {
	const general = `start each item with "- ", or put brackets around them`
	if n.kind == text && strings.HasPrefix(n.text, "-") || n.kind == mapping && len(n.pairs) > 0 && strings.HasPrefix(n.pairs[0].key.text, "-") {
		return `write a space after each dash: "- "`
	}
	if n.kind != mapping || len(n.pairs) == 0 || n.has("id") || n.has("type") || !hasID(item) {
		return general
	}
	first := n.pairs[0]
	switch {
	case first.value.kind == mapping:
		return `it is a list, in which each item has its name as the id: "- id: ` + first.key.shown() + `"`
	case first.value.kind == text && item == reflect.TypeFor[*spec.Variable]():
		return "it is a list: - {id: " + first.key.shown() + ", type: " + first.value.shown() + "}"
	}
	return general
}

// hasID reports whether the values of a type have an id.
func hasID(t reflect.Type) bool { return t.Implements(reflect.TypeFor[spec.Entity]()) }

// typeOfHint returns how to write a text that is the type of a mapping, such as the
// interface of a flow; empty if it is none.
func (d *decoder) typeOfHint(n *node, made reflect.Type) string {
	f, found := made.FieldByName("Type")
	if n.kind != text || !found || f.Tag.Get("yaml") != "type" {
		return ""
	}
	for rule := range strings.SplitSeq(d.language.ValidateTag(f), ",") {
		values, isList := strings.CutPrefix(rule, "oneof=")
		for _, value := range strings.Fields(values) {
			if isList && strings.EqualFold(value, n.text) {
				return "write {type: " + value + "}"
			}
		}
	}
	return ""
}

// thousands matches a number such as 4k and 4,000.
var thousands = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\d{1,5})[kK]$|^\d{1,3}(,\d{3})+$`) })

// numberHint returns how to write a number with digits only; empty for other texts.
func numberHint(n *node) string {
	m := thousands().FindStringSubmatch(n.text)
	switch {
	case n.kind != text || n.shown() != n.text || m == nil:
		return ""
	case m[1] != "":
		return "write " + m[1] + "000"
	}
	return "write " + strings.ReplaceAll(n.text, ",", "")
}

// sectionOf returns where the entities that a reference names are declared: under models.
func sectionOf(target reflect.Type) string {
	if target == reflect.TypeFor[*spec.Variable]() {
		return "under the variables of the flow"
	}
	application := reflect.TypeFor[spec.Application]()
	for i := range application.NumField() {
		if f := application.Field(i); f.Type.Kind() == reflect.Slice && f.Type.Elem() == target {
			return "under " + f.Tag.Get("yaml")
		}
	}
	return "in its own section"
}

// keyedType explains an entity without a type whose only key is the type: "- Echo: {…}".
func keyedType(found diag.Diagnostic, n *node, u *spec.Union) diag.Diagnostic {
	if len(n.pairs) != 1 || !slices.Contains(tags(u), n.pairs[0].key.text) {
		return found
	}
	return found.WithHint("write type: %s, with its other keys at the same level", n.pairs[0].key.text)
}

// unsetHint returns what to do about a variable that is not set. Names of environment
// variables are rarely in lower case: in a template it is likely an input.
func unsetHint(name string) string {
	if trimmed := strings.TrimSpace(name); trimmed != name && isVariableName(trimmed) {
		return "write ${" + trimmed + "}, without blanks"
	}
	if input := strings.TrimSpace(strings.TrimPrefix(name, "{")); strings.HasPrefix(name, "{") && isVariableName(input) && !strings.Contains(input, ".") {
		return fmt.Sprintf("the input %q of a template is {%s}, and ${DOLLAR:-$}{%s} with a $ before it", input, input, input)
	}
	other := otherForm(name)
	if other == "" && !isVariableName(name) {
		return "write ${DOLLAR:-$}{" + name + "} for the text ${" + name + "}"
	}
	hint := "set it, or write a default: ${" + name + ":-…}" + other
	if name == strings.ToLower(name) && strings.Trim(name, "0123456789_") != "" && other == "" {
		hint += "; the input " + strconv.Quote(name) + " of a template is {" + name + "}, without $"
	}
	return hint
}

// isVariableName reports whether programs and .env files give environment variables such names.
func isVariableName(name string) bool {
	return name != "" && strings.Trim(name, nameCharacters+"-") == ""
}

// lengthOfTime matches a number and a unit as people write them.
var lengthOfTime = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\d{1,6})\s*([A-Za-z]*)$`) })

// explainDuration adds how to write a length of time, if the text shows what is meant.
func explainDuration(found diag.Diagnostic, n *node) diag.Diagnostic {
	m := lengthOfTime().FindStringSubmatch(strings.TrimSpace(n.text))
	if m == nil || n.shown() != n.text || n.kind != text && n.kind != integer {
		return found
	}
	if m[2] == "" {
		return found.WithHint("give the unit: %ss", m[1]).WithSuggestion(m[1] + "s")
	}
	count, err := strconv.Atoi(m[1])
	if err != nil {
		return found
	}
	const hoursOfDay, daysOfWeek = 24, 7
	switch unit := strings.ToLower(m[2]); unit {
	case "d", "day", "days":
		return found.WithoutSuggestion().WithSuggestion(strconv.Itoa(count*hoursOfDay) + "h")
	case "w", "week", "weeks":
		return found.WithoutSuggestion().WithSuggestion(strconv.Itoa(count*daysOfWeek*hoursOfDay) + "h")
	case "ms", "msec", "millis", "millisecond", "milliseconds":
		return found.WithoutSuggestion().WithSuggestion(m[1] + "ms")
	case "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute", "minutes", "h", "hr", "hrs", "hour", "hours":
		return found.WithoutSuggestion().WithSuggestion(m[1] + unit[:1])
	}
	return found
}

// isVariableByName reports whether a pair declares a variable as "- question: text".
func isVariableByName(n *node, p pair, made reflect.Type) bool {
	return made == reflect.TypeFor[spec.Variable]() && len(n.pairs) == 1 && p.key.kind == text && p.value.kind == text
}

// shownType returns the type that a text names; … if it is not a built-in one, because the
// value may be secret.
func shownType(n *node) string {
	t, err := spec.ParseType(n.text)
	for err == nil && t.Elem != nil {
		t = *t.Elem
	}
	if err != nil || !isBuiltin(t.Name) {
		return "…"
	}
	return n.shown()
}

// explainOtherCase explains an unknown key that another type of the union has, such as the
// batch_config of another step: a key that is only similar to it is not meant.
func (d *decoder) explainOtherCase(found diag.Diagnostic, key *node, made reflect.Value) diag.Diagnostic {
	const most = 4 // types in a message
	u := d.unionWith(made.Addr().Interface().(spec.Node))
	if u == nil {
		return found
	}
	var types []string
	for _, c := range u.Cases {
		if _, has := d.planOf(reflect.TypeOf(c.New()).Elem()).byName[key.text]; has {
			types = append(types, c.Tag)
		}
	}
	if len(types) == 0 {
		return found
	}
	if len(types) > most {
		types = append(types[:most], "…")
	}
	return found.WithoutSuggestion().WithHint("it is a key of type %s", strings.Join(types, ", "))
}

// bracketHint returns how to write a text that starts with a bracket or a brace; empty for a
// value that does not.
func bracketHint(n *node) string {
	line := []rune(n.span.File.Line(n.span.Start.Line))
	if at := n.span.Start.Column - 1; at >= 0 && at < len(line) && (line[at] == '{' || line[at] == '[') {
		return "put a text that starts with " + string(line[at]) + " in quotes"
	}
	return ""
}

// emptyHint returns how to write a document that is a scalar, such as one with id:shop.
func emptyHint(n *node) string {
	first := strings.Fields(n.shown() + " .")[0]
	if m := keyWithoutSpace().FindStringSubmatch(first); m != nil {
		return "a colon needs a space after it: write " + m[1] + ": …" // the value may be secret
	}
	return "expected a mapping (an application) or a list"
}
