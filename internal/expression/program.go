package expression

import (
	"context"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"github.com/qtype-dev/qtype/spec"
)

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	text    string
	program *vm.Program
}

// Compile compiles the expression for variables of the given types.
func (f *Expression) Compile(env map[string]spec.Type, w Writer) (*Program, Result, error) {
	result, err := f.Check(env)
	if err != nil {
		return nil, Result{}, err
	}
	p := &Program{text: f.text}
	err = guarded(func() (err error) {
		fields := fieldTypes(env)
		fields[state] = types.TypeOf(&work{})
		p.program, err = expr.Compile(f.text, expr.Env(fields), expr.Patch(adder{}), expr.Patch(counter{}), func(c *conf.Config) {
			c.Functions[tick] = &builtin.Function{Name: tick, Func: count, Validate: countType}
			for name, function := range functions(w) {
				c.Functions[name] = function
			}
		})
		return err
	})
	if err != nil {
		return nil, Result{}, newError(f.text, err)
	}
	return p, result, nil
}

// Run evaluates the expression. values must have the compiled types: string, int,
// float64, bool, []any, map[string]any, time.Time, Message; nil only for optional
// ones. Run adds its state to them. Its error is an *Error, or the cause of the end of ctx.
func (p *Program) Run(ctx context.Context, values map[string]any) (any, error) {
	machine := vm.VM{MemoryBudget: budget}
	values[state] = &work{ctx: ctx, left: maxWork}
	v, err := machine.Run(p.program, values)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, newError(p.text, err)
	}
	return v, nil
}
