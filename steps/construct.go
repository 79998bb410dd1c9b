package steps

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// construct builds a record from its bound variables.
type construct struct {
	fields []binding
	whole  *slot // without bindings: the single input, which holds the record's data
	out    slot
}

func buildConstruct(s *spec.Construct, env *Env) (Runner, error) {
	c := &construct{}
	var err error
	if c.out, err = env.single("output", s.Outputs); err != nil {
		return nil, err
	}
	if !c.out.of.Type.IsRecord() {
		return nil, fmt.Errorf("output %s must be a record type, is %s", c.out.of.ID, c.out.of.Type)
	}
	if c.fields, err = env.bindings(s.FieldBindings); err != nil || len(c.fields) > 0 {
		return c, err
	}
	in, err := env.single("input", s.Inputs)
	if err != nil {
		return nil, fmt.Errorf("needs field_bindings, or else exactly 1 input, has %d", len(s.Inputs))
	}
	c.whole = &in
	return c, nil
}

// Process sets the output. A value of the wrong type for its field fails the row.
func (c *construct) Process(_ context.Context, row *Row, emit Emit) error {
	data, err := c.data(row)
	if err != nil {
		return err
	}
	v, err := value.Coerce(c.out.of.Type, data)
	if err != nil {
		return fmt.Errorf("%s: %w", c.out.of.Type, err)
	}
	c.out.write(row, v)
	return emit(row)
}

// data returns the fields of the record: one for each binding, else the whole of
// the single input.
func (c *construct) data(row *Row) (any, error) {
	if c.whole != nil {
		return c.whole.read(row)
	}
	fields := make([]value.Field, len(c.fields))
	for i, b := range c.fields {
		v, err := b.slot.read(row)
		if err != nil && !b.slot.of.IsOptional() {
			return nil, fmt.Errorf("field %s: %w", b.name, err)
		}
		fields[i] = value.Field{Name: b.name, Value: v}
	}
	return value.NewRecord("", fields...), nil
}
