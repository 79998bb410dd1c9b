package spec

// Tool is a function that agents and InvokeTool steps call.
type Tool interface {
	Entity
	Common() *ToolBase
}

// ToolBase holds what all tools share.
type ToolBase struct {
	Origin
	// ID is the tool's unique name in the document.
	ID string `yaml:"id" jsonschema:"required"`
	// Name is what a model calls the tool; every provider takes letters, digits, _ and -.
	Name string `yaml:"name" jsonschema:"required"`
	// Description tells a model what the tool does and when to use it.
	Description string `yaml:"description" jsonschema:"required"`
	// Inputs are the tool's arguments.
	Inputs []*Variable `yaml:"inputs"`
	// Outputs are the parts of the tool's result.
	Outputs []*Variable `yaml:"outputs"`
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
	Endpoint string `yaml:"endpoint" jsonschema:"required"`
	// Method is the HTTP method: GET, HEAD, OPTIONS, DELETE, PUT, POST or PATCH.
	Method string `yaml:"method" default:"GET"`
	// Auth names the credentials for the endpoint.
	Auth Ref[Auth] `yaml:"auth"`
	// Headers are sent with every request.
	Headers map[string]string `yaml:"headers"`
	// Parameters are further arguments, sent in the path where the endpoint names them, else in the query.
	Parameters []*Variable `yaml:"parameters"`
	// Timeout ends a call that takes longer, such as 10s.
	Timeout Duration `yaml:"timeout" default:"30s" validate:"gt=0"`
	// AllowPrivate lets the tool reach loopback, private and link-local addresses.
	AllowPrivate bool `yaml:"allow_private" default:"false"`
}

// PythonFunctionTool is a Python function.
type PythonFunctionTool struct {
	ToolBase
	// FunctionName is the function's name in its module.
	FunctionName string `yaml:"function_name" jsonschema:"required"`
	// ModulePath is the module's dotted path.
	ModulePath string `yaml:"module_path" jsonschema:"required"`
}

// Index is a vector or document store.
type Index interface {
	Entity
	Common() *IndexBase
}

// IndexBase holds what all indexes share.
type IndexBase struct {
	Origin
	// ID is the index's unique name in the document.
	ID string `yaml:"id" jsonschema:"required"`
	// Name is the collection's name in the store.
	Name string `yaml:"name" jsonschema:"required"`
	// Args are settings of the store.
	Args map[string]any `yaml:"args"`
	// Auth names the credentials for the store.
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
	// Module is the class of the store, as a dotted path.
	Module string `yaml:"module" jsonschema:"required"`
	// EmbeddingModel names the model that makes the vectors.
	EmbeddingModel Ref[*EmbeddingModel] `yaml:"embedding_model" jsonschema:"required"`
}

// DocumentIndex finds documents by their words.
type DocumentIndex struct {
	IndexBase
	// Endpoint is the store's URL.
	Endpoint string `yaml:"endpoint" jsonschema:"required"`
	// IDField is the field that holds a document's id.
	IDField string `yaml:"id_field"`
}
