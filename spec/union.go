package spec

import (
	"path"
	"reflect"
	"sync"
)

// Case is one alternative of a union: the value of the key `type` and its struct.
type Case struct {
	Tag     string      // the value of `type`
	New     func() Node // makes an empty value of the alternative
	Missing bool        // this version does not run it; see CheckAvailable
}

// Union is a set of structs of which a document chooses one by the key `type`.
type Union struct {
	Name        string       // what it is in a user's words
	Type        reflect.Type // the interface of this package
	Cases       []Case       // the alternatives, in alphabetical order of their tags
	TagOptional bool         // `type` may be left out: then the fields decide, first case first
}

func of[T any, P interface {
	*T
	Node
}](tag string) Case {
	return Case{Tag: tag, New: func() Node { return P(new(T)) }}
}

// Unions lists every union of the language. The loader, the schema and the docs are loops over it.
func (l *Language) Unions() []Union {
	all := Unions()
	for i := range all {
		if l != nil {
			all[i].Cases = append(all[i].Cases, l.cases[all[i].Type]...)
		}
	}
	return all
}

// DefinitionName returns the name of a struct in the schema. That of a struct of a part
// begins with the name of its package.
func DefinitionName(t reflect.Type) string {
	if t.Name() == "" || t.PkgPath() == reflect.TypeFor[Application]().PkgPath() {
		return t.Name()
	}
	return path.Base(t.PkgPath()) + "." + t.Name()
}

// Unions lists every union without those alternatives that programs add.
func Unions() []Union {
	return []Union{
		{Name: "step", Type: reflect.TypeFor[Step](), Cases: stepCases()},
		{Name: "tool", Type: reflect.TypeFor[Tool](), Cases: []Case{
			of[APITool]("APITool"), of[ClientTool]("ClientTool"), of[CommandTool]("CommandTool"),
			of[FlowTool]("FlowTool"), of[HostedTool]("HostedTool"), of[IndexTool]("IndexTool"), of[MCPTool]("MCPTool"), of[MemoryTool]("MemoryTool"), of[PythonFunctionTool]("PythonFunctionTool")}},
		{Name: "model", Type: reflect.TypeFor[ModelEntity](), Cases: []Case{
			of[EmbeddingModel]("EmbeddingModel"), of[Model]("Model")}},
		{Name: "auth", Type: reflect.TypeFor[Auth](), TagOptional: true, Cases: []Case{
			of[APIKeyAuth]("api_key"), of[BearerTokenAuth]("bearer_token"), of[AWSAuth]("aws"),
			of[OAuth2Auth]("oauth2"), of[OAuth2LoginAuth]("oauth2_login"), of[VertexAuth]("vertex"), of[BasicAuth]("basic"), of[AzureAuth]("azure")}},
		{Name: "secret manager", Type: reflect.TypeFor[SecretManager](), Cases: []Case{
			of[AWSSecretManager]("aws_secret_manager"), of[AzureKeyVault]("azure_key_vault"), of[EnvSecretManager]("env"),
			of[FileSecretManager]("file"), of[GoogleSecretManager]("google_secret_manager"), of[VaultSecretManager]("vault")}},
		{Name: "index", Type: reflect.TypeFor[Index](), Cases: indexCases()},
		{Name: "context block", Type: reflect.TypeFor[ContextBlock](), Cases: []Case{
			of[FactsBlock]("facts"), of[ObservationsBlock]("observations"), of[PinnedBlock]("pinned"), of[RetrievalBlock]("retrieval"), of[SummaryBlock]("summary"), of[VariablesBlock]("variables")}},
		{Name: "feedback", Type: reflect.TypeFor[Feedback](), Cases: []Case{
			of[CategoryFeedback]("category"), of[RatingFeedback]("rating"), of[ThumbsFeedback]("thumbs")}},
	}
}

func indexCases() []Case {
	return []Case{of[DocumentIndex]("DocumentIndex"), of[VectorIndex]("VectorIndex")}
}

func stepCases() []Case {
	return []Case{
		of[Agent]("Agent"), of[Aggregate]("Aggregate"), of[BedrockReranker]("BedrockReranker"),
		of[Collect]("Collect"), of[Construct]("Construct"), of[Decoder]("Decoder"),
		of[DocToTextConverter]("DocToTextConverter"), of[DocumentEmbedder]("DocumentEmbedder"),
		of[DocumentSearch]("DocumentSearch"), of[DocumentSource]("DocumentSource"),
		of[DocumentSplitter]("DocumentSplitter"), of[Echo]("Echo"), of[Explode]("Explode"),
		of[FieldExtractor]("FieldExtractor"), of[FileSource]("FileSource"), of[FileWriter]("FileWriter"),
		of[IndexUpsert]("IndexUpsert"), of[InvokeEmbedding]("InvokeEmbedding"), of[InvokeFlow]("InvokeFlow"),
		of[InvokeTool]("InvokeTool"), of[LLMInference]("LLMInference"), of[Loop]("Loop"),
		of[MemoryVariables]("MemoryVariables"), of[Parallel]("Parallel"),
		of[PromptTemplate]("PromptTemplate"), of[Reranker]("Reranker"), of[SQLSource]("SQLSource"), of[Switch]("Switch"),
		of[Transform]("Transform"), of[VectorSearch]("VectorSearch"),
	}
}

// StepTypes has an empty step of every type, in the order of the types' names.
func StepTypes() []Step {
	var all []Step
	for _, c := range stepCases() {
		all = append(all, c.New().(Step))
	}
	return all
}

// TypeName is the value of `type` of n: LLMInference, APITool, api_key; empty for a node of no union.
func TypeName(n Node) string { return TypeNameOf(reflect.TypeOf(n)) }

// TypeNameOf is TypeName for the nodes of a type. That of a step or a tool of another module is the name of the struct.
func TypeNameOf(t reflect.Type) string {
	name, known := typeNames()[t]
	if !known && t != nil && (t.Implements(reflect.TypeFor[Step]()) || t.Implements(reflect.TypeFor[Tool]())) {
		return t.Elem().Name()
	}
	return name
}

var typeNames = sync.OnceValue(func() map[reflect.Type]string {
	names := map[reflect.Type]string{}
	for _, u := range Unions() {
		for _, c := range u.Cases {
			names[reflect.TypeOf(c.New())] = c.Tag
		}
	}
	return names
})

// FindUnion returns the union of an interface type, nil for none.
func FindUnion(unions []Union, t reflect.Type) *Union {
	for i := range unions {
		if unions[i].Type == t {
			return &unions[i]
		}
	}
	return nil
}
