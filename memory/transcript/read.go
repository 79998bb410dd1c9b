package transcript

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// LineError is an error in a line of a transcript.
type LineError struct {
	Line int   // from 1
	Err  error // the cause
}

// Error names the line.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// maxLine limits a line, in bytes. Messages may contain media.
const maxLine = 64 << 20

// Import creates a session from the lines of a transcript, in one change; see
// memory.Memory.Import for what it checks. An error in the transcript is a
// *LineError, and nothing is stored.
func Import(ctx context.Context, m *memory.Memory, session string, in io.Reader) error {
	return ImportAll(ctx, m, in, Options{Session: &session, Format: Lines}, nil)
}

// Options configures ImportAll.
type Options struct {
	Session      *string // the session that is made of the file's only one; nil: the ids of the file
	Format       Format  // empty: it is detected
	SkipExisting bool    // leave sessions alone that exist already; otherwise they are an error
}

// Imported is a session of which ImportAll has read everything.
type Imported struct {
	Session string // its id
	Existed bool   // it existed already, and nothing was changed
}

// ImportAll creates the sessions of a file, each in one change and as soon as it has been
// read, and calls done for each; nil does nothing. An error in the file is a *LineError;
// the sessions before it stay.
func ImportAll(ctx context.Context, m *memory.Memory, in io.Reader, o Options, done func(Imported)) error {
	const detected = 64 << 10 // bytes that are read to detect the format
	buffered := bufio.NewReaderSize(in, detected)
	if o.Format == "" {
		o.Format = detect(buffered)
	}
	r := &reader{options: o}
	r.store = func() error {
		if r.id == nil {
			return &LineError{Line: max(r.line, 1), Err: errors.New("the file does not name its session; name the new one")}
		}
		one := Imported{Session: *r.id}
		err := m.Import(ctx, *r.id, r.Transcript)
		if _, exists := errors.AsType[*memory.SessionExistsError](err); exists && o.SkipExisting {
			one.Existed, err = true, nil
		}
		if invalid, ok := errors.AsType[*memory.TranscriptError](err); ok {
			return r.atLine(invalid)
		}
		if err == nil && done != nil {
			done(one)
		}
		return err
	}
	r.id = o.Session
	if o.Format != Lines {
		return r.readForeign(buffered)
	}
	if err := r.read(buffered); err != nil {
		return err
	}
	return r.store()
}

// readForeign reads and stores the messages of a file of another program.
func (r *reader) readForeign(in io.Reader) error {
	messages, err := readMessages(in, r.options.Format)
	if err != nil {
		return &LineError{Line: 1, Err: err}
	}
	r.line = 1
	for _, msg := range messages {
		r.Entries, r.messages = append(r.Entries, memory.Entry{Message: msg}), append(r.messages, 1)
	}
	return r.store()
}

// storeError is an error of storing what precedes a line, which is not one of the line.
type storeError struct{ error }

// begin begins a session of the file, and stores the one before.
func (r *reader) begin(id string) error {
	if r.named || len(r.Entries) > 0 {
		if r.options.Session != nil {
			return errors.New("the file has several sessions, which cannot be made one")
		}
		if err := r.store(); err != nil {
			return &storeError{err}
		}
	}
	r.named = true
	if r.options.Session == nil {
		r.id = &id
	}
	r.Transcript, r.messages, r.events, r.variables, r.values = memory.Transcript{}, nil, nil, 0, 0
	return nil
}

// reader reads a transcript and remembers the lines of its parts.
type reader struct {
	memory.Transcript
	options   Options
	id        *string      // the session that is read; nil if it is not known
	named     bool         // the file has named it
	store     func() error // stores what was read
	line      int
	messages  []int // the line of each entry
	events    []int // the line of each event
	variables int   // the line of the variables
	values    int   // the line of the values of context blocks
}

// atLine returns an error of the memory with the line that it concerns.
func (r *reader) atLine(e *memory.TranscriptError) error {
	line := max(r.line, 1)
	switch {
	case e.Index < 0:
	case e.Part == "entry":
		line = r.messages[e.Index]
	case e.Part == "event":
		line = r.events[e.Index]
	case e.Part == "value":
		line = r.values
	default:
		line = r.variables
	}
	return &LineError{Line: line, Err: errors.New(e.Problem)}
}

// read reads all lines; blank ones are skipped.
func (r *reader) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for lines.Scan() {
		r.line++
		raw := bytes.TrimSpace(lines.Bytes())
		if len(raw) == 0 {
			continue
		}
		if err := r.add(raw); err != nil {
			if failed, ok := errors.AsType[*storeError](err); ok {
				return failed.error
			}
			return &LineError{Line: r.line, Err: err}
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return &LineError{Line: r.line + 1, Err: fmt.Errorf("the line is longer than %d MiB", maxLine>>20)}
	}
	return lines.Err()
}

// add adds one line.
func (r *reader) add(raw []byte) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return errors.New("it is not a JSON object")
	}
	if keys["op"] != nil {
		return r.operate(raw)
	}
	var d details
	if more, ok := keys["qtype"]; ok {
		if err := decode(more, &d); err != nil {
			return fmt.Errorf(`"qtype": %w`, err)
		}
		delete(keys, "qtype")
		var err error
		if raw, err = json.Marshal(keys); err != nil {
			return err
		}
	}
	msg, err := chat.ParseOpenAI(raw)
	switch {
	case err != nil:
		return err
	case d.Message != nil:
		msg = *d.Message
	}
	if d.ID != "" {
		msg.ID = d.ID
	}
	e := memory.Entry{Message: msg, Turn: d.Turn, Time: d.Time}
	if d.Status == store.Failed.String() {
		e.Status = store.Failed
	}
	r.Entries, r.messages = append(r.Entries, e), append(r.messages, r.line)
	return nil
}

// operate adds a line that is not a message.
func (r *reader) operate(raw []byte) error {
	var op operation
	if err := decode(raw, &op); err != nil {
		return err
	}
	switch {
	case op.Op == opSession && op.Session != nil:
		return r.begin(*op.Session)
	case op.Op == opEvent && op.Event != nil:
		r.Events, r.events = append(r.Events, *op.Event), append(r.events, r.line)
		return nil
	case op.Op == opVariables && r.Variables == nil:
		r.variables = r.line
		for _, name := range slices.Sorted(maps.Keys(op.Set)) {
			r.Variables = append(r.Variables, memory.Variable{Name: name, Value: op.Set[name], Turn: op.Turns[name]})
		}
		slices.SortStableFunc(r.Variables, func(a, b memory.Variable) int { return cmp.Compare(a.Turn, b.Turn) })
		return nil
	case op.Op == opContext && r.Values == nil:
		r.values, r.Values = r.line, map[string][]byte{}
		for name, value := range op.Set {
			r.Values[name] = value
		}
		return nil
	}
	return fmt.Errorf("an operation of a transcript is session, event or, once, variables and context, not %q", op.Op)
}

// decode reads a JSON object and rejects unknown fields.
func decode(raw []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(to); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("%q must not be %s", wrong.Field, wrong.Value)
		}
		return errors.New(clean(err))
	}
	return nil
}

// clean returns an error of package json without its name.
func clean(err error) string { return string(bytes.TrimPrefix([]byte(err.Error()), []byte("json: "))) }
