package steps

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/rerank"
	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// Env is what steps need of the application. Slots is always set; a step that
// needs a function which is nil cannot be built.
type Env struct {
	Slots    Slots                                              // the layout of the flow's rows
	Model    func(*spec.Model) (model.Chat, error)              // returns the shared chat model
	Embedder func(*spec.EmbeddingModel) (model.Embedder, error) // returns the shared embedding model
	Memory   func(*spec.Memory) (*memory.Memory, error)         // returns the shared memory
	Tool     func(spec.Tool) (tool.Tool, error)                 // returns the shared tool
	Approve  tool.Approver                                      // confirms tool calls of an Agent; nil where no one can
	Audit    *tool.Audit                                        // records approvals and calls of tools; nil for none
	Flow     func(context.Context, FlowCall, FlowEmit) error    // runs another flow
	Database func(*spec.SQLSource) (*sqldb.Source, error)       // returns the query of a SQLSource
	HTTP     func(tool.Service) (*http.Client, error)           // returns a client for a server, with its credentials
	Index    func(spec.Index) (index.Index, error)              // returns the shared index
	Secret   func(spec.Secret) (string, error)                  // returns the text of a secret
	Failures func() int64                                       // returns how many rows have failed in the run, dropped ones included
	// Ranker returns the shared ranker of a Reranker or BedrockReranker, which build makes.
	Ranker func(s spec.Step, build func(rerank.Options) (rerank.Ranker, error)) (rerank.Ranker, error)
}

// FlowCall is one run of another flow on one row.
type FlowCall struct {
	Flow    *spec.Flow // the flow
	Inputs  []any      // one for each of Flow.Inputs; value.Unset where nothing is given
	Session string     // the caller's session
	Number  int64      // the caller's row number
	Ordinal int64      // the ordinal of the caller's row
}

// FlowEmit receives one result row of an invoked flow: one value for each of
// Flow.Outputs, or the error of the row. An error that it returns ends the run and
// is returned by Env.Flow.
type FlowEmit func(outputs []any, failed *Error) error

// builder makes a runner of one type of step.
type builder func(spec.Step, *Env) (Runner, error)

// builderFor adapts the build function of one struct.
func builderFor[S spec.Step](build func(S, *Env) (Runner, error)) (reflect.Type, builder) {
	return reflect.TypeFor[S](), func(s spec.Step, env *Env) (Runner, error) { return build(s.(S), env) }
}

// builders is the one table of the types of steps that can run.
var builders = sync.OnceValue(func() map[reflect.Type]builder {
	table := map[reflect.Type]builder{}
	add := func(t reflect.Type, b builder) { table[t] = b }
	add(builderFor(buildAgent))
	add(builderFor(buildAggregate))
	add(builderFor(buildBedrockReranker))
	add(builderFor(buildCollect))
	add(builderFor(buildConstruct))
	add(builderFor(buildDecoder))
	add(builderFor(buildDocumentSource))
	add(builderFor(buildDocToTextConverter))
	add(builderFor(buildDocumentEmbedder))
	add(builderFor(buildDocumentSearch))
	add(builderFor(buildDocumentSplitter))
	add(builderFor(buildEcho))
	add(builderFor(buildExplode))
	add(builderFor(buildFieldExtractor))
	add(builderFor(buildFileSource))
	add(builderFor(buildFileWriter))
	add(builderFor(buildIndexUpsert))
	add(builderFor(buildInvokeEmbedding))
	add(builderFor(buildInvokeFlow))
	add(builderFor(buildInvokeTool))
	add(builderFor(buildLLMInference))
	add(builderFor(buildLoop))
	add(builderFor(buildMemoryVariables))
	add(builderFor(buildParallel))
	add(builderFor(buildPromptTemplate))
	add(builderFor(buildReranker))
	add(builderFor(buildSQLSource))
	add(builderFor(buildSwitch))
	add(builderFor(buildTransform))
	add(builderFor(buildVectorSearch))
	return table
})

// Unsupported lists the step types of the language that cannot run yet, in
// alphabetical order.
func Unsupported() []string {
	var missing []string
	for _, u := range spec.Unions() {
		if u.Type != reflect.TypeFor[spec.Step]() {
			continue
		}
		for _, c := range u.Cases {
			if builders()[reflect.TypeOf(c.New())] == nil {
				missing = append(missing, c.Tag)
			}
		}
	}
	return missing
}

// Build makes a runner of a linked step: a Step or a Batch, possibly with the
// other interfaces of this package. It checks everything that can be known before
// the first row, such as templates, paths and names of tools. A step type that
// cannot run yet is a *spec.NotAvailableError. A runner serves one run of one flow.
func Build(s spec.Step, env *Env) (Runner, error) {
	if missing := spec.CheckAvailable(s); missing != nil {
		return nil, missing
	}
	if own, ok := s.(Maker); ok {
		return buildOwn(own, env)
	}
	build, ok := builders()[reflect.TypeOf(s)]
	if !ok {
		return nil, fmt.Errorf("step type %s has no builder", spec.TypeName(s))
	}
	return build(s, env)
}
