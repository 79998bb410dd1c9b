package runtime

import (
	"context"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/mediafile"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// DefaultSession is the session of rows without one, in flows that use no memory.
// Other flows need a session for every row; see NoSessionError.
const DefaultSession = "default"

// Input is one row to run. Its values are in Values, or in Cells under the names
// in Columns: the form for rows of a file, whose names are resolved once for all
// rows that share the slice Columns. What the flow does not take is ignored. Run
// reads an Input before it takes the next one and retains neither the map nor the
// slices.
type Input struct {
	Values  map[string]any // by variable id; not read if Columns is set
	Columns []string       // the names of the cells; must not change while the run lasts
	Cells   []any          // one value for each column
	Text    bool           // string cells are untyped text, as in CSV: the declared type decides how to read it
	Session string         // the conversation; a flow that uses a memory needs one, see NoSessionError
	Number  int64          // the row's number in results and errors; 0 means one more than the row before
	Err     error          // why the row could not be read: it keeps its place as a failed row

	// Base lets the row name files as values of media types, such as image: by paths and
	// public addresses. It is the path or the address of the file that the row is from:
	// relative names are in its folder; "./" is the current folder. Empty: the row must not
	// name files, which is right for rows of callers that are not trusted to read them.
	Base string
	// AnyFile lets the row name all files of this computer, as what the user types may; without
	// it, those in the folder of Base and below it.
	AnyFile bool

	encoded []byte     // the whole row; see EncodedInput
	row     *steps.Row // the whole row; see HeadInput
}

// Row returns an Input that has only values.
func Row(values map[string]any) Input { return Input{Values: values} }

// resolve finds the flow's inputs in a header, unless it is that of the row before.
func (s *rowAllocator) resolve(columns []string) {
	if len(columns) == len(s.header) && (len(columns) == 0 || &columns[0] == &s.header[0]) {
		return
	}
	s.header = columns
	for i := range s.inputs {
		s.inputs[i].column = slices.Index(columns, s.inputs[i].variable.ID)
	}
}

// fromInput returns an input as a row, its values coerced to the declared types.
func (s *rowAllocator) fromInput(ctx context.Context, in Input, number int64) *steps.Row {
	switch {
	case in.encoded != nil:
		row := s.decode(in.encoded)
		if row.Err == nil && in.Err != nil {
			row.Err = &steps.Error{Err: in.Err}
		}
		return row
	case in.row != nil:
		return in.row
	}
	err := in.Err
	switch {
	case in.Session != "":
	case s.needsSession == "":
		in.Session = DefaultSession
	case err == nil:
		err = &NoSessionError{Flow: s.flow, Memory: s.needsSession}
	}
	row := s.newRow(in.Session, number)
	if err == nil && in.Columns != nil {
		s.resolve(in.Columns)
	}
	for i := 0; i < len(s.inputs) && err == nil; i++ {
		to := &s.inputs[i]
		raw, ok := to.find(&in)
		if to.media && ok {
			raw, err = loadMedia(trust.ForUser(ctx), to.variable, raw, &mediafile.Source{Base: in.Base, AnyFile: in.AnyFile})
		}
		if err == nil {
			row.Values[to.slot], err = inputValue(to.variable, raw, ok)
		}
	}
	if err != nil {
		row.Err = &steps.Error{Err: err}
	}
	return row
}

// find returns the value of the flow input and whether the row has one.
func (s *inputSlot) find(in *Input) (raw any, ok bool) {
	switch {
	case in.Columns == nil:
		raw, ok = in.Values[s.variable.ID]
		return raw, ok
	case s.column < 0 || s.column >= len(in.Cells):
		return nil, false
	}
	raw = in.Cells[s.column]
	if text, isText := raw.(string); isText && in.Text {
		raw = value.ParseCell(text)
	}
	return raw, true
}

// loadMedia replaces the names of files in a value by their content, and checks all media.
func loadMedia(ctx context.Context, v *spec.Variable, raw any, files *mediafile.Source) (any, error) {
	t := v.Type
	t.Optional = v.IsOptional()
	loaded, err := files.Load(ctx, t, raw)
	if err != nil {
		return nil, fmt.Errorf("input %s: %w", v.ID, err)
	}
	return loaded, nil
}

// inputValue converts the value of a flow input to its declared type.
func inputValue(v *spec.Variable, raw any, ok bool) (any, error) {
	switch {
	case ok && raw != nil:
		x, err := value.Coerce(v.Type, raw)
		if err != nil {
			return value.Unset, fmt.Errorf("input %s: %w", v.ID, err)
		}
		return x, nil
	case v.IsOptional() && ok:
		return nil, nil
	case v.IsOptional():
		return value.Unset, nil
	case ok:
		return value.Unset, fmt.Errorf("input %s: it is null, expected %s", v.ID, v.Type)
	}
	return value.Unset, fmt.Errorf("input %s (%s) is missing", v.ID, v.Type)
}

// decode returns an encoded input as a row.
func (s *rowAllocator) decode(data []byte) *steps.Row {
	row := s.newRow("", 0)
	from := checkpoint.RowDecoder{Slots: s.slots()}
	if err := from.Decode(data, row); err != nil {
		row.Err = &steps.Error{Err: err}
	}
	row.Ordinal = row.Number
	return row
}

// slots returns the slots of the flow's inputs.
func (s *rowAllocator) slots() []int {
	all := make([]int, len(s.inputs))
	for i := range s.inputs {
		all[i] = s.inputs[i].slot
	}
	return all
}
