package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/internal/prompttemplate"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// decoder parses a text as JSON or XML into its outputs. It accepts what models
// write: a code fence with any label around the answer, and prose around that.
type decoder struct {
	in   slot
	outs []slot
	find func(text string, good func(*value.Record) bool) (*value.Record, error)
}

func buildDecoder(s *spec.Decoder, env *Env) (Runner, error) {
	d := &decoder{}
	var err error
	if d.in, err = env.single("input", s.Inputs); err != nil {
		return nil, err
	}
	if d.outs, err = env.slots(s.Outputs); err != nil {
		return nil, err
	}
	switch s.Format {
	case "", "json":
		d.find = findJSON
	case "xml":
		d.find = d.findXML
	default:
		return nil, fmt.Errorf("the format %q is neither json nor xml", s.Format)
	}
	return d, nil
}

// Process sets the outputs, each converted to its declared type. A missing key is
// null where the output is optional, else it fails the row.
func (d *decoder) Process(_ context.Context, row *Row, emit Emit) error {
	v, err := d.in.read(row)
	if err != nil {
		return err
	}
	text, err := decodable(d.in, v)
	if err != nil {
		return err
	}
	object, err := d.find(text, d.complete)
	if err != nil {
		return err
	}
	for _, out := range d.outs {
		if err := decode(out, object, row); err != nil {
			return err
		}
	}
	return emit(row)
}

// decodable returns the text of an input of type text or ChatMessage.
func decodable(in slot, v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	if in.of.Type.Is("ChatMessage") && v != nil {
		return value.Text(v), nil
	}
	return "", fmt.Errorf("variable %s: expected text, got %s", in.of.ID, value.Describe(v))
}

// complete reports whether an object has a value for every required output, and
// for at least one output. Only such an object is certainly the answer.
func (d *decoder) complete(r *value.Record) bool {
	found := false
	for _, out := range d.outs {
		_, ok := r.Get(out.of.ID)
		if !ok && !out.of.IsOptional() {
			return false
		}
		found = found || ok
	}
	return found
}

// decode sets one output from the key of the same name.
func decode(out slot, object *value.Record, row *Row) error {
	raw, ok := object.Get(out.of.ID)
	switch {
	case !ok && out.of.IsOptional():
		out.write(row, nil)
		return nil
	case !ok:
		return fmt.Errorf("the answer has no %q; it has %s", out.of.ID, listed(object.Names()))
	}
	v, err := value.Assign(out.of, lenientText(out.of.Type, raw))
	if err != nil {
		return fmt.Errorf("%s: %w", out.of.ID, err)
	}
	out.write(row, v)
	return nil
}

// lenientText converts other values to text where text is declared: a model that answers
// {"id": 42} means the text 42. An object or a list becomes its JSON, which FieldExtractor
// and another Decoder read.
func lenientText(t spec.Type, raw any) any {
	if !t.Is("text") {
		return raw
	}
	switch raw.(type) {
	case nil, string:
		return raw
	}
	return string(value.JSON(raw))
}

// listed joins names for an error message, the first ten of them.
func listed(names []string) string {
	const most = 10
	if len(names) == 0 {
		return "nothing"
	}
	var b strings.Builder
	for i, name := range names[:min(len(names), most)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(prompttemplate.Brief(name))
	}
	if len(names) > most {
		b.WriteString(", …")
	}
	return b.String()
}

// candidates lists the parts of a text that may hold the answer: what is between
// code fences, then the whole text for an answer in prose.
func candidates(text string) []string {
	found := []string{}
	rest := text
	for {
		_, after, ok := strings.Cut(rest, "```")
		if !ok {
			break
		}
		inside, next, closed := strings.Cut(after, "```")
		label, body, _ := strings.Cut(inside, "\n")
		if strings.ContainsAny(label, "{<[") { // no label: the answer begins on the line of the fence
			body = inside
		}
		found = append(found, body)
		if !closed {
			break
		}
		rest = next
	}
	return append(found, text)
}

// maxCandidates limits how many unmatched braces are tried in one text.
const maxCandidates = 100

// findJSON finds the first JSON object that good accepts, else the first object.
func findJSON(text string, good func(*value.Record) bool) (*value.Record, error) {
	text = value.AnswerText(text)
	if text == "" {
		return nil, errors.New("the text is empty, expected a JSON object")
	}
	whole, n, err := value.ParsePrefix(text)
	if err == nil && n == len(text) {
		if r, ok := whole.(*value.Record); ok {
			return r, nil
		}
		return nil, fmt.Errorf("expected a JSON object, got %s", value.Describe(whole))
	}
	s := &jsonScanner{good: good}
	for _, part := range candidates(text) {
		if s.scan(part); s.done {
			break
		}
	}
	switch {
	case s.found != nil:
		return s.found, nil
	case s.err != nil:
		return nil, fmt.Errorf("the JSON object cannot be read: %w", s.err)
	}
	return nil, fmt.Errorf("no JSON object in the text: %s", value.Describe(text))
}

// jsonScanner finds a JSON object in prose.
type jsonScanner struct {
	good  func(*value.Record) bool
	found *value.Record // the first object, or the first accepted one once done
	err   error         // why the first text that looked like an object could not be read
	done  bool
	tried int
}

// scan tries each opening brace. A balanced object that cannot be read is skipped
// as a whole: an object inside of a malformed one is not the answer.
func (s *jsonScanner) scan(text string) {
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '{')
		if i < 0 || s.tried >= maxCandidates {
			return
		}
		at += i
		v, n, err := value.ParsePrefix(text[at:])
		if err == nil {
			s.take(v.(*value.Record))
			if s.done {
				return
			}
			at += n
			continue
		}
		if s.err == nil {
			s.err = err
		}
		length := balanced(text[at:])
		switch {
		case length > 0:
			at += length
		case looksLikeObject(text[at:]):
			return // truncated: its inner objects are not the answer
		default:
			s.tried++
			at++
		}
	}
}

// take stores the first object until one is accepted.
func (s *jsonScanner) take(r *value.Record) {
	good := s.good(r)
	if s.found == nil || good {
		s.found = r
	}
	s.done = good
}

// balanced returns the length of the text from a brace to the matching one,
// ignoring braces in quotes; 0 if there is none.
func balanced(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// looksLikeObject reports whether a quoted key follows the brace.
func looksLikeObject(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text[1:], " \t\r\n"), `"`)
}
