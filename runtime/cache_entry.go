package runtime

import (
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// port is a variable that a cached step reads or writes.
type port struct {
	name string
	at   int // its slot
}

// ports are the variables behind references, each once, as the layout knows them.
func ports(l *layout, refs []spec.Ref[*spec.Variable], derived []*spec.Ref[*spec.Variable]) []port {
	var all []port
	seen := map[int]bool{}
	add := func(v *spec.Variable) {
		if at := l.Slot(v); at >= 0 && !seen[at] {
			seen[at] = true
			all = append(all, port{v.ID, at})
		}
	}
	for _, r := range refs {
		add(r.To)
	}
	for _, r := range derived {
		add(r.To)
	}
	return all
}

// appendRow appends what a step made of a row: its outputs, or the error that
// the row has.
func appendRow(b []byte, row *steps.Row, outputs []port) []byte {
	if row.Err != nil {
		return appendFailure(append(b, '{'), row.Err)
	}
	b = append(b, `{"outputs":{`...)
	for i, p := range outputs {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendValue(append(value.AppendJSON(b, p.name), ':'), row.Values[p.at])
	}
	return append(b, "}}"...)
}

// appendFailure appends an error with the steps that lead to it, and closes the object.
func appendFailure(b []byte, err *steps.Error) []byte {
	path, reason := err.Path()
	b = append(b, `"failed":[`...)
	for i, id := range path {
		if i > 0 {
			b = append(b, ',')
		}
		b = value.AppendJSON(b, id)
	}
	return append(value.AppendJSON(append(b, `],"error":`...), reason.Error()), '}')
}

// cachedRow is one row of an entry.
type cachedRow struct {
	outputs []any        // one for each of the step's outputs
	failed  *steps.Error // why the row failed; nil where it did not
}

// cacheEntry is an entry, read: the rows that a step made, and why it failed after
// them, where it did.
type cacheEntry struct {
	rows []cachedRow
	err  error
}

// readEntry reads an entry of a step with these outputs.
func readEntry(entry []byte, outputs []port) (*cacheEntry, error) {
	v, err := value.Parse(string(entry))
	if err != nil {
		return nil, err
	}
	top, ok := v.(*value.Record)
	if !ok {
		return nil, errMalformedEntry
	}
	list, _ := top.Get("rows")
	rows, ok := list.([]any)
	if !ok {
		return nil, errMalformedEntry
	}
	res := &cacheEntry{rows: make([]cachedRow, len(rows))}
	for i, raw := range rows {
		if res.rows[i], err = readRow(raw, outputs); err != nil {
			return nil, err
		}
	}
	if text, ok := top.Get("error"); ok {
		message, _ := text.(string)
		res.err = errors.New(message)
	}
	return res, nil
}

func readRow(raw any, outputs []port) (cachedRow, error) {
	r, ok := raw.(*value.Record)
	if !ok {
		return cachedRow{}, errMalformedEntry
	}
	if path, ok := r.Get("failed"); ok {
		return readFailure(r, path)
	}
	object, _ := r.Get("outputs")
	values, ok := object.(*value.Record)
	if !ok {
		return cachedRow{}, errMalformedEntry
	}
	k := cachedRow{outputs: make([]any, len(outputs))}
	for i, p := range outputs {
		v, ok := values.Get(p.name)
		if !ok {
			return cachedRow{}, fmt.Errorf("it has no output %s", p.name)
		}
		var err error
		if k.outputs[i], err = decodeValue(v); err != nil {
			return cachedRow{}, err
		}
	}
	return k, nil
}

func readFailure(r *value.Record, path any) (cachedRow, error) {
	ids, _ := path.([]any)
	text, _ := r.Get("error")
	message, ok := text.(string)
	if !ok {
		return cachedRow{}, errMalformedEntry
	}
	err := errors.New(message)
	var failed *steps.Error
	for i := len(ids) - 1; i >= 0; i-- {
		id, _ := ids[i].(string)
		failed = &steps.Error{Step: id, Err: err}
		err = failed
	}
	if failed == nil {
		failed = &steps.Error{Err: err}
	}
	return cachedRow{failed: failed}, nil
}

// replay emits the rows of an entry in the place of the step's own: its outputs
// are set on the row, or on copies of it where there are several.
func (res *cacheEntry) replay(row *steps.Row, outputs []port, emit steps.Emit) error {
	for i, k := range res.rows {
		r := row
		if i < len(res.rows)-1 || res.err != nil { // the row itself is still needed
			r = row.Clone()
		}
		for j, p := range outputs {
			if k.failed == nil {
				r.Values[p.at] = k.outputs[j]
			}
		}
		r.Err = k.failed
		if err := emit(r); err != nil {
			return err
		}
	}
	return res.err
}
