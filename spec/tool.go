package spec

import (
	"slices"
	"strings"
)

// Tool is a function that agents and InvokeTool steps call.
type Tool interface {
	Entity
	// Common is what all tools share.
	Common() *ToolBase
	// Arguments are what a caller of the tool may give.
	Arguments() []*Variable
	// Results are the parts of the tool's result; declared reports whether the document declares them.
	Results() (vars []*Variable, declared bool)
	// HasEffects reports whether a call may change something that undoing its turn does not undo.
	HasEffects() bool
}

// ToolBase holds what all tools share.
type ToolBase struct {
	Positioned
	// ID is the tool's unique name in the document.
	ID string `yaml:"id" jsonschema:"required"`
	// Name is the name of the tool that models see; all providers accept letters, digits, _ and -.
	Name string `yaml:"name" jsonschema:"required"`
	// Description describes what the tool does and when to use it; models read it.
	Description string `yaml:"description" jsonschema:"required"`
	// Inputs are the tool's arguments.
	Inputs []*Variable `yaml:"inputs"`
	// Outputs are the parts of the tool's result.
	Outputs []*Variable `yaml:"outputs"`
	// Deferred hides the tool from the model of an Agent until the model finds it by a search among the tools, where the provider has one. Other providers get it as any tool.
	Deferred bool `yaml:"deferred" default:"false" example:"true"`
	// Strict binds the arguments that a model writes to the types of the inputs, where the provider can. An optional input is null where the model has no value.
	Strict bool `yaml:"strict" default:"false" example:"true"`
	// Grammar restricts the text that a model passes to the tool, whose only input must be a text. Providers without grammars get the tool with a text.
	Grammar *ToolGrammar `yaml:"grammar"`
}

// ToolGrammar restricts a text that a model writes for a tool.
type ToolGrammar struct {
	Positioned
	// Syntax is the form of the grammar.
	Syntax string `yaml:"syntax" default:"lark" validate:"oneof=lark regex"`
	// Definition is the grammar.
	Definition string `yaml:"definition" jsonschema:"required"`
}

// EntityID is the id.
func (t *ToolBase) EntityID() string { return t.ID }

// Kind is KindTool.
func (t *ToolBase) Kind() Kind { return KindTool }

// Common is what all tools share.
func (t *ToolBase) Common() *ToolBase { return t }

// APITool is an HTTP endpoint.
type APITool struct {
	ToolBase
	// Endpoint is the URL; {name} is replaced by the argument of that name.
	Endpoint string `yaml:"endpoint" jsonschema:"required" syntax:"endpoint"`
	// Method is the HTTP method: GET, HEAD, OPTIONS, DELETE, PUT, POST or PATCH.
	Method string `yaml:"method" default:"GET" case:"ignored"`
	// Auth is the id of the credentials for the endpoint.
	Auth Ref[Auth] `yaml:"auth" accepts:"api_key bearer_token basic oauth2 aws vertex azure"`
	// AuthAudience is what the credentials of a cloud are for: with an auth of type aws the service that requests are signed for, by default execute-api (API Gateway), or lambda at the URL of a function; with azure the resource that tokens are requested for, by default the scheme and host of the endpoint.
	AuthAudience string `yaml:"auth_audience"`
	// Headers are sent with every request. A value may be a secret.
	Headers map[string]Secret `yaml:"headers" secret:"named"`
	// IdempotencyHeader is a header with a key of the call, such as Idempotency-Key. The key is the same when the call is repeated, so that a server which knows it acts once; a request with any method may then be retried.
	IdempotencyHeader string `yaml:"idempotency_header"`
	// Parameters are further arguments, sent in the path if the endpoint has them as {name}, else in the query.
	Parameters []*Variable `yaml:"parameters" arguments:"true"`
	// HeaderParameters are further arguments, sent as headers.
	HeaderParameters []*Variable `yaml:"header_parameters" arguments:"true"`
	// Names maps arguments to the names by which the server knows them, such as filter[state]; the others have their id.
	Names map[string]string `yaml:"names"`
	// BodyFormat is how the body is written: json, form, multipart with files, or raw, which is the text or the bytes of one input.
	BodyFormat string `yaml:"body_format" default:"json" validate:"oneof=json form multipart raw"`
	// Body is the input that is the whole body, such as a list. Without it, the body is an object of the inputs that the endpoint does not name.
	Body string `yaml:"body"`
	// ListFormat is how a list is written in the query and in a form: repeat (a=1&a=2), brackets (a[]=1&a[]=2), indices (a[0]=1&a[1]=2) or comma (a=1,2).
	ListFormat string `yaml:"list_format" default:"repeat" validate:"oneof=repeat brackets indices comma"`
	// RecordFormat is how a record is written in the query and in a form: json, or brackets (a[b]=1).
	RecordFormat string `yaml:"record_format" default:"json" validate:"oneof=json brackets"`
	// Pagination requests further pages of the result, and joins their lists.
	Pagination *Pagination `yaml:"pagination"`
	// Timeout ends a call that takes longer, such as 10s.
	Timeout Duration `yaml:"timeout" default:"30s" validate:"gt=0"`
	// AllowPrivate lets the tool reach loopback, private and link-local addresses.
	AllowPrivate bool `yaml:"allow_private" default:"false"`
}

// StandardModule is the dotted path of the module of QType (Python) whose functions are a part of this program.
const StandardModule = "qtype.application.commons.tools"

// PythonFunctionTool is a Python function.
type PythonFunctionTool struct {
	ToolBase
	// FunctionName is the function's name in its module.
	FunctionName string `yaml:"function_name" jsonschema:"required"`
	// ModulePath is the module's dotted path; it is searched in the document's folder, then in PYTHONPATH.
	ModulePath string `yaml:"module_path" jsonschema:"required"`
	// Env are the environment variables of the function; of the process environment it sees only PATH, HOME, the locale and similar variables, no secrets.
	Env map[string]Secret `yaml:"env"`
	// Timeout ends a call that takes longer, such as 10s.
	Timeout Duration `yaml:"timeout" default:"60s" validate:"gt=0"`
	// MemoryMB is the maximum memory of the function, in MiB of address space.
	MemoryMB int `yaml:"memory_mb" default:"2048" validate:"gt=0"`
	// Containment limits what the function can reach; the folders in which modules are searched are readable.
	Containment *Containment `yaml:"containment"`
}

// MCPTool is the tools of a Model Context Protocol server: one that is started by a command, or one at a URL.
// The server itself declares the names and arguments of the tools.
type MCPTool struct {
	ToolBase `without:"name,description,inputs,outputs,strict,grammar"`
	// Command is the program that is started as the server.
	Command string `yaml:"command"`
	// Args are the program's arguments.
	Args []string `yaml:"args"`
	// Env are the environment variables of the program; it sees no others of this process.
	Env map[string]Secret `yaml:"env"`
	// Containment limits what the program can reach.
	Containment *Containment `yaml:"containment"`
	// URL is the address of a running server.
	URL string `yaml:"url" validate:"omitempty,http_url"`
	// Auth is the id of the credentials for the server at the URL.
	Auth Ref[Auth] `yaml:"auth" accepts:"api_key bearer_token basic oauth2 oauth2_login"`
	// AllowPrivate lets the URL be a loopback, private or link-local address.
	AllowPrivate bool `yaml:"allow_private" default:"false"`
	// Tools are the names of the server's tools that may be called. The default is all of them, or none if resources or prompts are listed.
	Tools []string `yaml:"tools"`
	// Prefix begins the names by which models call the tools of this server, such as github_. It distinguishes servers whose tools have the same names.
	Prefix string `yaml:"prefix"`
	// Resources are the addresses of the server's resources, such as config://shop, or templates of them, such as file:///{path}. Each is a tool that returns the content; the names in braces are its arguments.
	Resources []string `yaml:"resources"`
	// Prompts are the names of the server's prompts. Each is a tool that returns the text of the prompt with its arguments.
	Prompts []string `yaml:"prompts"`
	// Sampling lets the server call a model of the document during a call; without it, such requests are refused.
	Sampling *Sampling `yaml:"sampling"`
	// Elicitation lets the server ask the person who uses the flow during a call, as a ClientTool does; without it, such requests are refused.
	Elicitation bool `yaml:"elicitation" default:"false"`
	// Timeout ends a call that takes longer, such as 10s.
	Timeout Duration `yaml:"timeout" default:"30s" validate:"gt=0"`
}

// Sampling is how the server of an MCPTool may call a model.
type Sampling struct {
	Positioned
	// Model is the id of the model that is called.
	Model Ref[*Model] `yaml:"model" jsonschema:"required"`
	// MaxTokens is the maximum length of an answer; the server may request a shorter one.
	MaxTokens int `yaml:"max_tokens" default:"1000" validate:"gt=0"`
	// MaxCalls is the maximum number of calls of the model for one call of a tool.
	MaxCalls int `yaml:"max_calls" default:"5" validate:"gt=0"`
}

// CommandTool is a program: it reads the arguments as a JSON object from its standard input and writes the result as JSON to its standard output.
type CommandTool struct {
	ToolBase
	// Program is the program's name or path; it is started without a shell.
	Program string `yaml:"program" jsonschema:"required"`
	// Args are the program's arguments.
	Args []string `yaml:"args"`
	// Env are the environment variables of the program; it sees no others of this process.
	Env map[string]Secret `yaml:"env"`
	// Timeout ends a call that takes longer, such as 10s.
	Timeout Duration `yaml:"timeout" default:"30s" validate:"gt=0"`
	// Containment limits what the program can reach.
	Containment *Containment `yaml:"containment"`
}

// FlowTool is a flow as a tool: its arguments are the flow's inputs, its result the flow's outputs.
type FlowTool struct {
	ToolBase `optional:"name,description" without:"inputs,outputs"`
	// Flow is the id of the flow to run. Its id and description are the defaults of the tool's name and description.
	Flow Ref[*Flow] `yaml:"flow" jsonschema:"required"`
	// Session is the session of the flow's memories: caller for that of the caller, own for a session of the tool in each session of the caller, or call for an empty session in each call, of which nothing is stored.
	Session string `yaml:"session" default:"caller" validate:"oneof=caller own call"`
	// Budget ends a call of the tool that would exceed it, in addition to the budget of the flow. The caller gets an error and continues.
	Budget *Budget `yaml:"budget"`
}

// The values of FlowTool.Session.
const (
	SessionOfCaller = "caller" // the caller's session
	SessionOfTool   = "own"    // one of the tool, for each session of the caller
	SessionOfCall   = "call"   // an empty one, of which nothing is stored
)

// SharesSession reports whether the tool runs its flow in the session of the caller.
func (t *FlowTool) SharesSession() bool { return t.Session == "" || t.Session == SessionOfCaller }

// SessionIn returns the session in which the tool runs its flow for a caller's session.
func (t *FlowTool) SessionIn(caller string) string {
	if t.SharesSession() {
		return caller
	}
	return caller + "/" + t.ID
}

// ClientTool is a function of the program that runs the flow: a person's approval, a form, an action of the user interface. The call is passed to that program, and the run continues with its result.
type ClientTool struct {
	ToolBase
	// Timeout ends a call that takes longer; without it there is no limit.
	Timeout Duration `yaml:"timeout" validate:"gt=0"`
}

// HostedTool is a tool that the provider of the model runs itself, such as its web search. Only Agents can have it: the calls and their results are parts of the answer of the model, and no flow can call the tool. OpenAI asks for an approval of each call of an mcp tool: list the tool under approve of the Agent, or set require_approval to never.
type HostedTool struct {
	ToolBase `optional:"name,description" without:"inputs,outputs,strict,grammar"`
	// Hosted is the kind of the tool. Each provider has some of them.
	Hosted string `yaml:"hosted" jsonschema:"required" validate:"hosted"`
	// Settings are sent to the provider unchanged, such as {max_uses: 3}.
	Settings map[string]any `yaml:"settings"`
}

// Index is a vector or document store.
type Index interface {
	Selector
	// Common is what both kinds of indexes share.
	Common() *IndexBase
	store() (Selection, IndexStore)
}

// IndexBase holds what all indexes share.
type IndexBase struct {
	Positioned
	// ID is the index's unique name in the document.
	ID string `yaml:"id" jsonschema:"required"`
	// Name is the collection's name in the store.
	Name string `yaml:"name" jsonschema:"required"`
	// Args are settings of the store.
	Args map[string]any `yaml:"args"`
	// Auth is the id of the credentials for the store.
	Auth Ref[Auth] `yaml:"auth"`
}

// EntityID is the id.
func (x *IndexBase) EntityID() string { return x.ID }

// Kind is KindIndex.
func (x *IndexBase) Kind() Kind { return KindIndex }

// Common is what all indexes share.
func (x *IndexBase) Common() *IndexBase { return x }

// VectorIndex finds texts by the similarity of their embeddings.
type VectorIndex struct {
	IndexBase
	// Module is the store: embedded for an index inside the process, which needs no server; qdrant, pgvector, opensearch, elasticsearch, chroma or redis; or the class of LlamaIndex for one of these, as a dotted path.
	Module string `yaml:"module" jsonschema:"required,example=embedded"`
	// EmbeddingModel is the id of the model that computes the vectors.
	EmbeddingModel Ref[*EmbeddingModel] `yaml:"embedding_model" jsonschema:"required"`
}

// DocumentIndex finds documents by full-text search.
type DocumentIndex struct {
	IndexBase
	// Endpoint is the store: the URL of OpenSearch, Elasticsearch or Redis, or embedded for an index inside the process, which needs no server.
	Endpoint string `yaml:"endpoint" jsonschema:"required,example=embedded"`
	// IDField is the field that holds a document's id.
	IDField string `yaml:"id_field"`
}

// Arguments returns what a caller of the tool may give.
func (t *ToolBase) Arguments() []*Variable { return t.Inputs }

// Results returns the parts of the tool's result; declared reports whether the
// document declares them.
func (t *ToolBase) Results() (vars []*Variable, declared bool) { return t.Outputs, true }

// Arguments returns the inputs and the parameters.
func (t *APITool) Arguments() []*Variable {
	return slices.Concat(t.Inputs, t.Parameters, t.HeaderParameters)
}

// Arguments returns the inputs of the flow.
func (t *FlowTool) Arguments() []*Variable {
	if t.Flow.To == nil {
		return nil
	}
	return linkedVariables(t.Flow.To.Inputs)
}

// Results returns the outputs of the flow.
func (t *FlowTool) Results() (vars []*Variable, declared bool) {
	if t.Flow.To == nil {
		return nil, false
	}
	return linkedVariables(t.Flow.To.Outputs), true
}

// Results returns nothing: what a server's tools return is not declared.
func (t *MCPTool) Results() (vars []*Variable, declared bool) { return nil, false }

// UsesTools reports whether tools of the server may be called.
func (t *MCPTool) UsesTools() bool {
	return len(t.Tools) > 0 || len(t.Resources)+len(t.Prompts) == 0
}

// Allows reports whether the tool of a name may be called.
func (t *MCPTool) Allows(name string) bool {
	return slices.Contains(t.Tools, name) || len(t.Tools) == 0 && t.UsesTools()
}

// Single reports whether the document allows exactly one tool, resource or prompt.
func (t *MCPTool) Single() bool { return len(t.Tools)+len(t.Resources)+len(t.Prompts) == 1 }

// NeedsCaller reports whether calls of a tool may need an answer of the program that runs
// the flow, or of its user.
func NeedsCaller(t Tool) bool {
	switch t := t.(type) {
	case *ClientTool:
		return true
	case *MCPTool:
		return t.Elicitation
	}
	return false
}

func linkedVariables(refs []Ref[*Variable]) []*Variable {
	var vars []*Variable
	for i := range refs {
		if refs[i].To != nil {
			vars = append(vars, refs[i].To)
		}
	}
	return vars
}

// HasEffects reports whether a call may change something outside of the conversation, which
// undoing its turn does not undo: every call whose declaration does not say otherwise.
func (t *ToolBase) HasEffects() bool { return true }

// HasEffects reports whether the method may change something.
func (t *APITool) HasEffects() bool {
	return !slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, strings.ToUpper(t.Method))
}

// HasEffects returns false for the functions of StandardModule, which compute.
func (t *PythonFunctionTool) HasEffects() bool { return t.ModulePath != StandardModule }

// HasEffects returns false: an IndexTool searches.
func (t *IndexTool) HasEffects() bool { return false }

// HasEffects reports whether other conversations see the values that the tool sets.
func (t *MemoryTool) HasEffects() bool {
	return !t.Search && !t.Read && t.Scope != ScopeSession && t.Scope != ""
}

// HostedKind is a kind of tools that providers run: a value of HostedTool.Hosted.
type HostedKind struct {
	Name      string   // in documents
	Doc       string   // what it does, for the manual and the editor
	Providers []string // that have it; models of openai and azure-openai by the Responses API
}

// HostedKinds lists the kinds of hosted tools. The caller must not change the list.
func HostedKinds() []HostedKind {
	return []HostedKind{
		{"web_search", "searches the web", []string{"openai", "azure-openai", "anthropic", "google-ai", "gcp-vertex", "aws-bedrock"}},
		{"web_fetch", "reads pages of the web", []string{"anthropic", "google-ai", "gcp-vertex"}},
		{"code_execution", "runs code that the model writes", []string{"openai", "azure-openai", "anthropic", "google-ai", "gcp-vertex", "aws-bedrock"}},
		{"file_search", "searches files that are stored at the provider", []string{"openai", "azure-openai", "google-ai"}},
		{"image_generation", "makes images", []string{"openai", "azure-openai"}},
		{"google_maps", "looks places up", []string{"google-ai", "gcp-vertex"}},
		{"mcp", "calls a server of the Model Context Protocol from the provider's network", []string{"openai", "azure-openai", "anthropic"}},
		{"tool_search", "searches the tools that are deferred", []string{"openai", "azure-openai", "anthropic"}},
	}
}

// LookupHosted finds a kind by its name.
func LookupHosted(name string) (HostedKind, bool) {
	return findRow(HostedKinds(), func(k HostedKind) bool { return k.Name == name })
}

// HostedConflict returns why a model cannot have the tool; empty if it can.
func (t *HostedTool) HostedConflict(m *Model) string {
	kind, known := LookupHosted(t.Hosted)
	row, callable := callableProvider(m)
	switch {
	case !known || !callable || row.Client == MockClient: // a mock answers without tools
		return ""
	case !slices.Contains(kind.Providers, row.Name):
		return "provider " + row.Name + " has no hosted tool " + t.Hosted
	case row.Name == "openai" || row.Name == "azure-openai":
		return t.openAIConflict(m)
	case t.Hosted == mcpKind && t.Settings["url"] == nil:
		return "hosted tool mcp needs settings with url"
	}
	return ""
}

// openAIConflict is HostedConflict for a model of OpenAI.
func (t *HostedTool) openAIConflict(m *Model) string {
	with := *m
	with.HasHosted = true
	switch {
	case t.Hosted != "web_search" && !with.UsesResponses():
		return "chat completions have no hosted tool " + t.Hosted + "; set `api: responses` if the server has the Responses API"
	case t.Hosted != mcpKind:
		return ""
	case t.Settings["server_label"] == nil || t.Settings["server_url"] == nil && t.Settings["connector_id"] == nil:
		return "hosted tool mcp needs settings with server_label and server_url"
	}
	return ""
}

// AsksApproval reports whether the provider of a model asks for an approval before it calls the tool.
// OpenAI does unless require_approval is never. It is not known for mocks and settings with variables.
func (t *HostedTool) AsksApproval(m *Model) (asks, known bool) {
	row, callable := callableProvider(m)
	if !callable || row.Client == MockClient {
		return false, false
	}
	if t.Hosted != mcpKind || row.Name != "openai" && row.Name != "azure-openai" {
		return false, true
	}
	setting := t.Settings["require_approval"]
	text, isText := setting.(string)
	return text != "never", !isText || !strings.Contains(text, "${")
}

// mcpKind is the kind of hosted tools that needs the address of a server.
const mcpKind = "mcp"

// markHosted marks the models of agents with hosted tools.
func (p *Plan) markHosted() {
	for _, s := range p.Steps {
		agent, ok := s.Step.(*Agent)
		if !ok || agent.Model.To == nil || !slices.ContainsFunc(agent.Tools, func(r Ref[Tool]) bool { _, hosted := r.To.(*HostedTool); return hosted }) {
			continue
		}
		m := agent.Model.To.Base()
		m.HasHosted = true
		for _, ref := range m.Fallbacks {
			if ref.To != nil {
				ref.To.Base().HasHosted = true
			}
		}
	}
}
