package schema

import (
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// TakeBatch returns a parsed request without its member batch, and the value of that: whether calls of models are made in batches. It
// is no member of its own where the flow has an input of that name, unless it is beside a list of rows. The error is a *problem.Problem.
func (f *Flow) TakeBatch(body any) (rest any, batch bool, err error) {
	r, ok := body.(*value.Record)
	if !ok {
		return body, false, nil
	}
	v, ok := r.Get(batchMember)
	fields := make([]value.Field, 0, r.Len())
	for name, v := range r.All() {
		if name != batchMember {
			fields = append(fields, value.Field{Name: name, Value: v})
		}
	}
	without := value.NewRecord(r.Type(), fields...)
	if _, isList := f.rowList(without); !ok || !isList && f.hasBatchInput() {
		return body, false, nil
	}
	if batch, ok = v.(bool); !ok {
		return nil, false, Invalid([]problem.Field{{Pointer: "/" + batchMember, Detail: "expected true or false, not " + value.Describe(v)}})
	}
	return without, batch, nil
}

// batchMember is the member of a request that asks for batches.
const batchMember = "batch"

func (f *Flow) hasBatchInput() bool { return spec.VariableByID(f.Inputs, batchMember) != nil }

// InForm reports whether a form asks for batches.
func (f *Flow) InForm(fields map[string][]string) bool {
	return fields[batchMember] != nil && !f.hasBatchInput()
}
