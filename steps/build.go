package steps

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// Env is what steps need of the application around them. Slots is always
// there; a step that needs a function which is nil cannot be built.
type Env struct {
	Slots Slots                                 // where the variables of the flow stand
	Model func(*spec.Model) (model.Chat, error) // the shared chat model
	// Embedder is the shared embedding model.
	Embedder func(*spec.EmbeddingModel) (model.Embedder, error)
	Memory   func(*spec.Memory) (*memory.Memory, error)      // the shared memory
	Tool     func(spec.Tool) (tool.Tool, error)              // the shared tool
	Approve  tool.Approver                                   // asks a person whether an Agent may call a tool; nil where nobody is there
	Flow     func(context.Context, FlowCall, FlowEmit) error // runs another flow; for InvokeFlow, Switch, Loop and Parallel
	// Database is the query of a SQLSource over its database.
	Database func(*spec.SQLSource) (*sqldb.Source, error)
}

// FlowCall asks for one run of another flow on one row.
type FlowCall struct {
	Flow    *spec.Flow // the flow
	Inputs  []any      // one for each of Flow.Inputs; value.Unset where nothing is given
	Session string     // the caller's session
	Number  int64      // the caller's row
	Place   int64      // where that stands in the run
}

// FlowEmit takes one result row of an invoked flow: one value for each of
// Flow.Outputs, or why the row failed. Its error ends the run and comes back from Env.Flow.
type FlowEmit func(outputs []any, failed *Error) error

// NotAvailableError says that the language knows a step type that this version does not run.
type NotAvailableError struct {
	Type string // the value of `type`
}

// Error names the type.
func (e *NotAvailableError) Error() string {
	return fmt.Sprintf("step type %s is not available yet", e.Type)
}

// builder makes a runner of one type of step.
type builder func(spec.Step, *Env) (Runner, error)

// builderFor makes a builder of a function for one struct.
func builderFor[S spec.Step](build func(S, *Env) (Runner, error)) (reflect.Type, builder) {
	return reflect.TypeFor[S](), func(s spec.Step, env *Env) (Runner, error) { return build(s.(S), env) }
}

// builders is the one table of what can be run. A step type of the language
// stands either here or in Planned.
var builders = sync.OnceValue(func() map[reflect.Type]builder {
	table := map[reflect.Type]builder{}
	add := func(t reflect.Type, b builder) { table[t] = b }
	add(builderFor(buildAgent))
	add(builderFor(buildAggregate))
	add(builderFor(buildCollect))
	add(builderFor(buildConstruct))
	add(builderFor(buildDecoder))
	add(builderFor(buildEcho))
	add(builderFor(buildEmbedding))
	add(builderFor(buildExplode))
	add(builderFor(buildExtractor))
	add(builderFor(buildFileSource))
	add(builderFor(buildFileWriter))
	add(builderFor(buildInference))
	add(builderFor(buildInvokeFlow))
	add(builderFor(buildInvokeTool))
	add(builderFor(buildLoop))
	add(builderFor(buildMemoryVariables))
	add(builderFor(buildParallel))
	add(builderFor(buildSQLSource))
	add(builderFor(buildSwitch))
	add(builderFor(buildTemplate))
	add(builderFor(buildTransform))
	return table
})

// Unsupported lists the step types that the language has and this version does not run, in alphabetical order.
func Unsupported() []string {
	return []string{"BedrockReranker", "DocToTextConverter", "DocumentEmbedder", "DocumentSearch", "DocumentSource",
		"DocumentSplitter", "IndexUpsert", "VectorSearch"}
}

// Build makes a runner of a linked step: a Step or a Batch, perhaps a Closer
// too. Everything that can be known before the first row is checked here:
// templates, paths, names of tools. A step type that this version does not run
// is a *NotAvailableError. A runner serves one run of one flow.
func Build(s spec.Step, env *Env) (Runner, error) {
	build, ok := builders()[reflect.TypeOf(s)]
	if !ok {
		return nil, &NotAvailableError{Type: spec.TypeName(s)}
	}
	return build(s, env)
}
