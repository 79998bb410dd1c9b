package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/mediafile"
	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/value"
)

// maxInput is the maximum number of bytes of a single input from a file or standard input.
const maxInput = 64 << 20

// openValue reads the input of -i: JSON, text, @FILE or -.
func (in *input) openValue(arg string) error {
	text, from, err := in.readValue(arg)
	if err != nil {
		return err
	}
	in.base = mediafile.BaseOf(strings.TrimPrefix(arg, "@"))
	if !strings.HasPrefix(arg, "@") {
		in.base, in.typed = mediafile.CurrentFolder, arg != "-"
	}
	in.values, err = in.parseValue(text)
	if err == nil {
		err = in.checkKeys()
	}
	if err == nil {
		err = in.prepareValueSessions()
	}
	if err != nil {
		if from == "" {
			return terminal.Usagef("-i: %s", err)
		}
		return fmt.Errorf("%s: %w", from, err)
	}
	in.total = in.applyLimits(int64(len(in.values)))
	in.rows = in.valueRows
	return nil
}

// readValue returns the text of -i and its source; the source is empty for the
// command line itself.
func (in *input) readValue(arg string) (text []byte, from string, err error) {
	path, isFile := strings.CutPrefix(arg, "@")
	var source io.Reader
	switch {
	case arg == "-":
		source, from = in.cfg.Streams.In, "standard input"
	case isFile:
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return nil, "", fmt.Errorf("-i @%s: is a directory, not a file", path)
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, "", fmt.Errorf("-i @%s: %w", path, terminal.Cause(err))
		}
		defer func() { _ = f.Close() }() // only read
		source, from = f, path
	default:
		return []byte(arg), "", nil
	}
	text, err = io.ReadAll(io.LimitReader(source, maxInput+1))
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("%s: %w", from, terminal.Cause(err))
	case len(text) > maxInput:
		return nil, "", fmt.Errorf("%s: is larger than 64 MB: pass many rows with -I FILE", from)
	}
	return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), from, nil
}

// parseValue returns the rows of a text.
func (in *input) parseValue(text []byte) ([]map[string]any, error) {
	body := bytes.TrimSpace(text)
	if len(body) == 0 {
		return nil, errors.New("the input is empty")
	}
	if single := in.single(); single != nil && body[0] != '{' && body[0] != '[' {
		return []map[string]any{{single.ID: plainInput(single, body)}}, nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil && body[0] != '{' && body[0] != '[' {
		return nil, fmt.Errorf("flow %s has %s, so %s is not enough: pass a JSON object, such as %s", in.flow.ID, textfmt.Count(len(in.flow.Inputs), "input"),
			strconv.Quote(textfmt.Ellipsis(string(body), maxQuotedInput)), in.example())
	} else if err != nil {
		return nil, fmt.Errorf("not valid JSON: %s", jsonReason(err))
	}
	if dec.More() {
		return nil, errors.New("not valid JSON: unexpected text after the first value; pass several rows as an array")
	}
	switch v := v.(type) {
	case map[string]any:
		return []map[string]any{v}, nil
	case []any:
		return objects(v)
	}
	return nil, fmt.Errorf("expected a JSON object with the flow's inputs: %s", in.example())
}

// maxQuotedInput is how many characters of an input an error quotes.
const maxQuotedInput = 40

// checkKeys rejects keys that are neither inputs nor the session or its user. Unlike an unused
// column of a file, such a key is a mistyped one.
func (in *input) checkKeys() error {
	var known []string
	for _, ref := range in.flow.Inputs {
		known = append(known, ref.To.ID)
	}
	for i, row := range in.values {
		for _, key := range slices.Sorted(maps.Keys(row)) {
			if slices.Contains(known, key) || key == in.cfg.SessionColumn || key == in.cfg.UserColumn || slices.Contains(sessionColumns(), key) || slices.Contains(userColumns(), key) {
				continue
			}
			where := ""
			if len(in.values) > 1 {
				where = fmt.Sprintf("item %d of the array: ", i+1)
			}
			inputs := "; there are: " + textfmt.List(known)
			if len(known) == 0 {
				inputs = "; it has none"
			}
			return fmt.Errorf("%sflow %s has no input %q%s%s", where, in.flow.ID, key, inputs, diag.DidYouMean(key, known))
		}
	}
	return nil
}

// jsonReason describes an error of encoding/json with its position.
func jsonReason(err error) string {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends before it is complete"
	case errors.As(err, &syntax):
		return fmt.Sprintf("%s at character %d", syntax.Error(), syntax.Offset)
	}
	return err.Error()
}

// objects returns the rows of an array.
func objects(list []any) ([]map[string]any, error) {
	rows := make([]map[string]any, len(list))
	for i, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("item %d of the array is not an object: a row is an object with the flow's inputs", i+1)
		}
		rows[i] = m
	}
	return rows, nil
}

// single returns the flow's only required input, or its only input; nil if there are
// several.
func (in *input) single() *spec.Variable {
	required := in.required()
	if len(required) == 1 {
		return required[0]
	}
	if len(required) == 0 && len(in.flow.Inputs) == 1 {
		return in.flow.Inputs[0].To
	}
	return nil
}

// plainInput returns a text that is not an object as the value of an input. A JSON
// string is the text that it encodes.
func plainInput(v *spec.Variable, body []byte) any {
	if body[0] == '"' {
		var s string
		if json.Unmarshal(body, &s) == nil {
			return s
		}
	}
	if v.Type.Is("text") || v.Type.Is("ChatMessage") {
		return string(body)
	}
	return value.ParseCell(body)
}

// example returns an input that would be accepted.
func (in *input) example() string {
	var parts []string
	for _, ref := range in.flow.Inputs {
		parts = append(parts, fmt.Sprintf("%q: …", ref.To.ID))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// valueRows yields the rows of a single input.
func (in *input) valueRows(yield func(runtime.Input) bool) {
	for i, row := range in.values {
		number := int64(i) + 1
		if in.pastLimit(number) {
			return
		}
		if !in.selects(number, func() records.Record { return recordOf(row, number) }) {
			continue
		}
		session, err := in.sessionOf(func(c string) (any, bool) { v, ok := row[c]; return v, ok }, number)
		if !yield(runtime.Input{Values: row, Session: session, Number: number, Err: err, Base: in.base, AnyFile: in.typed}) {
			return
		}
	}
}

// recordOf returns a row as a record, with its columns in alphabetical order.
func recordOf(row map[string]any, number int64) records.Record {
	rec := records.Record{Number: number, Columns: slices.Sorted(maps.Keys(row))}
	for _, c := range rec.Columns {
		rec.Values = append(rec.Values, row[c])
	}
	return rec
}
