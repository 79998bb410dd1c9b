package expression

import (
	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/conf"
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
		p.program, err = expr.Compile(f.text, expr.Env(fieldTypes(env)), expr.Patch(adder{}), func(c *conf.Config) {
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
// ones. Its error is an *Error.
func (p *Program) Run(values map[string]any) (any, error) {
	machine := vm.VM{MemoryBudget: budget}
	v, err := machine.Run(p.program, values)
	if err != nil {
		return nil, newError(p.text, err)
	}
	return v, nil
}
