package spec

import (
	"slices"
	"time"
)

// Step is one stage of a flow.
type Step interface {
	Entity
	// Common is what all steps share.
	Common() *StepBase
}

// StepBase holds what all steps share.
type StepBase struct {
	Positioned
	// ID is the step's unique name.
	ID string `yaml:"id" jsonschema:"required"`
	// Inputs are the variables that the step reads, by their ids.
	Inputs []Ref[*Variable] `yaml:"inputs"`
	// Outputs are the variables that the step writes, by their ids.
	Outputs []Ref[*Variable] `yaml:"outputs"`
	// CacheConfig caches the step's results on disk; without it nothing is cached.
	CacheConfig *CacheConfig `yaml:"cache_config"`
	// Timeout ends the step's work on a row that takes longer, such as 30s.
	Timeout Duration `yaml:"timeout" validate:"gt=0"`
	// Retry sets how often a failed attempt on a row is repeated; models and tools retry their calls themselves.
	Retry *RetryPolicy `yaml:"retry"`
	// OnError selects what happens to a row that the step fails on: fail (the row keeps its error), skip (the row is dropped), continue (the row goes on without the step's outputs).
	OnError string `yaml:"on_error" default:"fail" validate:"oneof=fail skip continue"`
	// DerivedInputs are variables that the step reads without naming them in inputs: bindings, paths and expressions.
	DerivedInputs []*Ref[*Variable] `yaml:"-"`
	// DerivedOutputs are variables that the step writes without naming them in outputs: bindings and assignments.
	DerivedOutputs []*Ref[*Variable] `yaml:"-"`
}

// EntityID is the id.
func (s *StepBase) EntityID() string { return s.ID }

// Kind is KindStep.
func (s *StepBase) Kind() Kind { return KindStep }

// Common is what all steps share.
func (s *StepBase) Common() *StepBase { return s }

// CacheDirectory is the default folder of caches.
const CacheDirectory = "./.qtype-cache"

// CacheConfig describes how a step's results are cached on disk.
type CacheConfig struct {
	Positioned
	// Directory is the folder of the cache. Without it, results are in the store of memories if that is PostgreSQL or Redis, so that all processes share them, and else in ./.qtype-cache.
	Directory string `yaml:"directory"`
	// Namespace separates caches in one folder.
	Namespace string `yaml:"namespace"`
	// OnError sets whether failed results are cached: Drop or Cache.
	OnError string `yaml:"on_error" default:"Drop" validate:"oneof=Drop Cache"`
	// Version separates results of different versions of the step.
	Version string `yaml:"version" default:"1.0"`
	// Compress stores results compressed.
	Compress bool `yaml:"compress" default:"false"`
	// TTL is how many seconds a result is valid; without it results do not expire.
	TTL *int `yaml:"ttl" validate:"omitempty,gt=0"`
	// KeyedBy describes what the cache key covers: configuration (the inputs and everything that determines the result: prompt, model, tool, types), or inputs (the inputs alone, as in QType; then increase version when something else changes).
	KeyedBy string `yaml:"keyed_by" default:"configuration" validate:"oneof=configuration inputs"`
	// Scope is who shares the results: app (all callers, who can learn from the time of an answer that another one asked the same), user, or session.
	Scope Scope `yaml:"scope" default:"app" validate:"oneof=app user session"`
	// MaxSizeMB is how many MiB the step's results may take on disk; the least recently used ones are evicted.
	MaxSizeMB int `yaml:"max_size_mb" default:"1024" validate:"gt=0"`
}

// BatchConfig describes how rows are grouped into batches.
type BatchConfig struct {
	Positioned
	// BatchSize is the maximum number of rows in a batch.
	BatchSize int `yaml:"batch_size" default:"25" validate:"gt=0"`
	// MaxWait is how long a batch waits for more rows, such as 5s, before it is processed incomplete. Without it a batch waits until it is full or the input ends.
	MaxWait Duration `yaml:"max_wait" validate:"gt=0"`
}

// ConcurrencyConfig sets how many rows a step processes at once.
type ConcurrencyConfig struct {
	Positioned
	// NumWorkers is the maximum number of rows at once.
	NumWorkers int `yaml:"num_workers" default:"1" validate:"gt=0"`
}

// Concurrent is embedded in the steps that can process several rows at once.
type Concurrent struct {
	// ConcurrencyConfig sets how many rows the step processes at once.
	ConcurrencyConfig *ConcurrencyConfig `yaml:"concurrency_config"`
}

// Workers is the maximum number of rows at once; 1 by default.
func (c Concurrent) Workers() int {
	if c.ConcurrencyConfig == nil {
		return 1
	}
	return c.ConcurrencyConfig.NumWorkers
}

// Batched is embedded in the steps that process rows in batches.
type Batched struct {
	// BatchConfig describes how rows are grouped into batches.
	BatchConfig *BatchConfig `yaml:"batch_config"`
}

// Wait is how long a batch waits for more rows; 0 for no limit.
func (b Batched) Wait() time.Duration {
	if b.BatchConfig == nil {
		return 0
	}
	return time.Duration(b.BatchConfig.MaxWait)
}

// Bindings maps names of the invoked tool, flow or record to variables of the calling flow, in document order.
type Bindings []Binding

// Binding is one entry of a bindings map.
type Binding struct {
	Name string         // the name in the invoked tool, flow or record
	Var  Ref[*Variable] // the variable of the calling flow
}

// PathRef is a constant path or a variable that holds one.
type PathRef struct {
	URI string         // the constant; empty where a variable is named
	Var Ref[*Variable] // the variable
}

// LLMInference calls a chat model, with or without a memory.
type LLMInference struct {
	StepBase `span:"LLM" streams:"text" records:"use an Agent, whose output may be a custom type, or a text here and a Decoder after it" in:"question: text" out:"answer: text; QT322 exactly 1; QT323 text|ChatMessage"`
	Concurrent
	// Model is the id of the chat model to call.
	Model Ref[ModelEntity] `yaml:"model" jsonschema:"required"`
	// Memory is the id of the memory that holds the conversation; steps with the same memory share it.
	Memory Ref[*Memory] `yaml:"memory"`
	// SystemMessage is the system prompt.
	SystemMessage string `yaml:"system_message" verbatim:"true"`
	// Sources is a variable with search results. The model reads them with numbers, and those that its answer cites, as in [1], are the sources of the answer.
	Sources Ref[*Variable] `yaml:"sources"`
}

// Agent calls a chat model that may call tools until it has the answer.
type Agent struct {
	StepBase `span:"AGENT" streams:"text" caller_tools:"offers" in:"question: text; QT324 exactly 1; QT326 text|ChatMessage" out:"answer: text; QT325 exactly 1"`
	Concurrent
	// Model is the id of the chat model to call.
	Model Ref[ModelEntity] `yaml:"model" jsonschema:"required"`
	// Memory is the id of the memory that holds the conversation, tool calls and results included.
	Memory Ref[*Memory] `yaml:"memory"`
	// SystemMessage is the system prompt.
	SystemMessage string `yaml:"system_message" verbatim:"true"`
	// Tools are the ids of the tools that the model may call.
	Tools []Ref[Tool] `yaml:"tools"`
	// MaxToolExecutions is the maximum number of tool calls in one run of the step.
	MaxToolExecutions int `yaml:"max_tool_executions" default:"20" validate:"gt=0"`
	// MaxRepeatedCalls is how often the model may make the same tool call with the same result in one run of the step. The result of the last one has a note not to repeat it; the next one fails the step.
	MaxRepeatedCalls int `yaml:"max_repeated_calls" default:"3" validate:"min=2"`
	// Repeatable are the ids of those tools for which max_repeated_calls does not count, such as one that returns the state of a job.
	Repeatable []Ref[Tool] `yaml:"repeatable" role:"-"`
	// ParallelTools runs the tool calls of one model response in parallel instead of one after the other.
	ParallelTools bool `yaml:"parallel_tools" default:"false"`
	// Approve are those tools that are called only after a person approved the call: their ids, or mappings that also name who decides.
	Approve []*Approval `yaml:"approve"`
	// Handoffs are the ids of flows to which the model may transfer the conversation. The flow's answer is the answer of the step, and with a memory the next turns of the session go to the flow until an Agent in it hands the conversation back.
	Handoffs []Ref[*Flow] `yaml:"handoffs" role:"handoff"`
	// Sources is a variable with search results. The model reads them with numbers, and those that its answer cites, as in [1], are the sources of the answer.
	Sources Ref[*Variable] `yaml:"sources"`
}

// Prompted is implemented by the steps that have a system message.
type Prompted interface {
	// SystemPrompt returns the system message, empty for none.
	SystemPrompt() string
}

// SystemPrompt is the system message.
func (s *LLMInference) SystemPrompt() string { return s.SystemMessage }

// SystemPrompt is the system message.
func (a *Agent) SystemPrompt() string { return a.SystemMessage }

// PromptTemplate fills a template with the row's values.
type PromptTemplate struct {
	StepBase `in:"question: text" out:"prompt: text; QT320 exactly 1; QT321 text" work:"compute"`
	// Template is the text; {name} is replaced by the input of that name, {{ and }} are literal braces.
	Template string `yaml:"template" jsonschema:"required" syntax:"template" example:"\"Answer briefly: {question}\""`
}

// PromptText returns the template: what a client of the application may use as a prompt.
func (s *PromptTemplate) PromptText() string { return s.Template }

// Echo copies its inputs to its outputs.
type Echo struct {
	StepBase `work:"compute"`
}

// Decoder parses a text as JSON or XML into its outputs.
type Decoder struct {
	StepBase `in:"json: text; QT330 exactly 1; QT331 text" out:"label: text; QT332 at least 1" work:"compute"`
	// Format is the text's form: json or xml.
	Format string `yaml:"format" default:"json" validate:"oneof=json xml"`
}

// FieldExtractor extracts values from its input by a JSONPath, one row for each match.
type FieldExtractor struct {
	StepBase `rows:"many" in:"found: SearchResult; QT345 exactly 1" out:"words: text; QT346 exactly 1" work:"compute"`
	// JSONPath is the path, such as $.items[*].name.
	JSONPath string `yaml:"json_path" jsonschema:"required" syntax:"jsonpath" example:"$.content"`
}

// Explode makes one row of each element of a list.
type Explode struct {
	StepBase `rows:"many" in:"names: list[text]; QT333 exactly 1; QT335 list" out:"name: text; QT334 exactly 1" work:"compute"`
}

// Collect makes one list of a variable's values over many rows.
type Collect struct {
	StepBase `rows:"batch" in:"name: text; QT337 exactly 1" out:"names: list[text]; QT338 exactly 1; QT339 list" work:"compute"`
	Batched
	// By are variables that group rows: consecutive rows in which they are equal make one list, instead of all rows. To undo an Explode, name a variable that differs between its input rows, or the list that it exploded.
	By []Ref[*Variable] `yaml:"group_by" alias:"by"`
}

// Construct builds a record from its inputs.
type Construct struct {
	StepBase `work:"compute"`
	// FieldBindings maps each field of the record to a variable.
	FieldBindings Bindings `yaml:"field_bindings" jsonschema:"required"`
}

// Aggregate counts the rows that pass and adds one row with the counts.
type Aggregate struct {
	StepBase `rows:"batch" work:"compute"`
}

// FileSource reads a file, one row for each record.
type FileSource struct {
	StepBase `rows:"many" effect:"reads files"`
	// Path is a variable that holds the path, or {uri: …} for a constant one.
	Path PathRef `yaml:"path" jsonschema:"required"`
	// Base is the folder or the address below which the files are that a variable names; relative paths are below it. Without it, that is the working directory, where addresses are not allowed. A constant path is not limited.
	Base string `yaml:"base"`
	// Table describes how the file is read where its name and content do not tell: its encoding, delimiter, header and others.
	Table *Table `yaml:"table"`
}

// FileWriter writes rows to a file.
type FileWriter struct {
	StepBase `rows:"batch" without_inputs:"reads_row" files:"writes" effect:"writes files"`
	Batched
	// Path is a variable that holds the path, or {uri: …} for a constant one.
	Path PathRef `yaml:"path" jsonschema:"required"`
	// Base is the folder or the address below which the files are that a variable names; relative paths are below it. Without it, that is the working directory, where addresses are not allowed (with --out-dir, that folder). A constant path is not limited.
	Base string `yaml:"base"`
	// CSVSafe writes an apostrophe before texts in CSV and TSV files that begin with =, +, -, @, a tab or a carriage return, which spreadsheets take for formulas.
	CSVSafe bool `yaml:"csv_safe"`
}

// HoldsPath reports whether the values of a type can be paths: texts, and values of any type.
func HoldsPath(t Type) bool {
	return t.Elem == nil && t.Custom == nil && slices.Contains([]string{"text", "citation_url", "citation_document", Any}, t.Name)
}

// WritingStep is a step that writes a file, which it replaces.
type WritingStep interface {
	Step
	// WrittenFile is the path of the file, and the folder or the address below which a path from a variable is.
	WrittenFile() (path PathRef, base string)
}

// FileStep is a step that reads or writes the file of a path.
type FileStep interface {
	Step
	// FilePath is the path of the file, the folder or the address below which a path from a variable is, and whether
	// the step writes it.
	FilePath() (path PathRef, base string, writes bool)
}

// DatabaseStep is a step that reads a SQL database.
type DatabaseStep interface {
	Step
	// Database is the address of the database.
	Database() string
}

// Database is the address of the database that the query reads.
func (s *SQLSource) Database() string { return s.Connection.Reveal() }

// FilePath is the path of the file of rows.
func (s *FileSource) FilePath() (path PathRef, base string, writes bool) {
	return s.Path, s.Base, false
}

// FilePath is the path of the file of the rows.
func (s *FileWriter) FilePath() (path PathRef, base string, writes bool) {
	return s.Path, s.Base, true
}

// WrittenFile is the file of the rows.
func (s *FileWriter) WrittenFile() (path PathRef, base string) { return s.Path, s.Base }

// SQLSource runs a query, one row for each result row.
type SQLSource struct {
	StepBase `rows:"many" effect:"queries a database" out:"name: text; QT350 at least 1"`
	// Query is the SQL text; :name is replaced by the input of that name.
	Query string `yaml:"query" jsonschema:"required" syntax:"sql" example:"select name from people"`
	// Connection is the database's URL.
	Connection Secret `yaml:"connection" jsonschema:"required" secret:"url" example:"\"sqlite:///people.db\""`
	// Auth is the id of the credentials for the database: a user and a password, a token that is the password or the access token of a service, or an identity of AWS (Amazon RDS, Athena), Google Cloud (BigQuery) or Azure (SQL Server).
	Auth Ref[Auth] `yaml:"auth" accepts:"basic bearer_token aws vertex azure"`
}

// InvokeTool calls a tool.
type InvokeTool struct {
	StepBase `span:"TOOL"`
	Concurrent
	// Tool is the id of the tool to call.
	Tool Ref[Tool] `yaml:"tool" jsonschema:"required"`
	// InputBindings maps the tool's inputs to variables; without it, the tool is called without arguments.
	InputBindings Bindings `yaml:"input_bindings"`
	// OutputBindings maps the tool's outputs to variables.
	OutputBindings Bindings `yaml:"output_bindings" jsonschema:"required" binds:"outputs"`
}

// InvokeFlow runs another flow for each row.
type InvokeFlow struct {
	StepBase `rows:"many" work:"compute"`
	// Flow is the id of the flow to run.
	Flow Ref[*Flow] `yaml:"flow" jsonschema:"required"`
	// InputBindings maps the flow's inputs to variables; without it, the flow gets no values.
	InputBindings Bindings `yaml:"input_bindings"`
	// OutputBindings maps the flow's outputs to variables.
	OutputBindings Bindings `yaml:"output_bindings" jsonschema:"required" binds:"outputs"`
}

// InvokeEmbedding turns a text or an image into a vector.
type InvokeEmbedding struct {
	StepBase `span:"EMBEDDING"`
	Concurrent
	// Model is the id of the embedding model to call.
	Model Ref[*EmbeddingModel] `yaml:"model" jsonschema:"required"`
}
