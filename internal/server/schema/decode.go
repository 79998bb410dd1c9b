package schema

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/mediafile"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// ParseBody parses a JSON request. The error is a *problem.Problem.
func ParseBody(body []byte) (any, error) {
	v, err := value.Parse(string(body))
	if err == nil {
		return v, nil
	}
	if syntax, ok := errors.AsType[*value.SyntaxError](err); ok {
		return nil, problem.New(http.StatusBadRequest, "malformed_json", "line %d, column %d: %s", syntax.Line, syntax.Column, syntax.Reason)
	}
	return nil, problem.New(http.StatusBadRequest, "malformed_json", "%s", err)
}

// Row is one row of a request.
type Row struct {
	*value.Record
	Pointer string // its place in the body, as a JSON pointer
}

// Rows returns the rows of a parsed request: an object is one row; a list of objects, or
// an object whose only member is a list of objects named rows, are several. The error is
// a *problem.Problem.
func (f *Flow) Rows(body any) ([]Row, error) {
	if list, ok := body.([]any); ok {
		return objects(list, "")
	}
	r, ok := body.(*value.Record)
	if !ok {
		return nil, problem.New(http.StatusUnprocessableEntity, "invalid_request", "the body must be a JSON object of the flow's inputs, or a list of such objects, not %s", value.Describe(body))
	}
	if list, ok := f.rowList(r); ok {
		return objects(list, "/rows")
	}
	return []Row{{r, ""}}, nil
}

// rowList returns the list named rows, unless the flow has an input of that name.
func (f *Flow) rowList(r *value.Record) ([]any, bool) {
	if r.Len() != 1 || spec.VariableByID(f.Inputs, "rows") != nil {
		return nil, false
	}
	v, _ := r.Get("rows")
	list, ok := v.([]any)
	return list, ok
}

func objects(list []any, pointer string) ([]Row, error) {
	rows := make([]Row, len(list))
	for i, item := range list {
		at := fmt.Sprintf("%s/%d", pointer, i)
		r, ok := item.(*value.Record)
		if !ok {
			p := problem.New(http.StatusUnprocessableEntity, "invalid_request", "row %d is not an object", i+1)
			p.Errors = []problem.Field{{Pointer: at, Detail: "expected an object, not " + value.Describe(item)}}
			return nil, p
		}
		rows[i] = Row{r, at}
	}
	return rows, nil
}

// Decode converts the inputs of one row to their declared types. pointer is the place of
// the row in the body. Inputs for which have returns true may be missing.
func (f *Flow) Decode(row *value.Record, pointer string, have func(*spec.Variable) bool) (map[string]any, []problem.Field) {
	values := make(map[string]any, len(f.Inputs))
	var wrong []problem.Field
	for _, v := range f.Inputs {
		raw, ok := row.Get(v.ID)
		switch {
		case !ok && (v.IsOptional() || have != nil && have(v)):
			continue
		case !ok:
			wrong = append(wrong, problem.Field{Pointer: pointer + "/" + escape(v.ID), Detail: fmt.Sprintf("the input is missing: expected %s", v.Type)})
			continue
		}
		x, err := decodeInput(v, raw)
		if err != nil {
			wrong = append(wrong, fieldOf(pointer+"/"+escape(v.ID), err))
			continue
		}
		values[v.ID] = x
	}
	return values, wrong
}

// Invalid returns the problem of a request with wrong fields.
func Invalid(wrong []problem.Field) *problem.Problem {
	p := problem.New(http.StatusUnprocessableEntity, "invalid_input", "%s: %s", wrong[0].Pointer, wrong[0].Detail)
	p.Errors = wrong
	return p
}

// fieldOf returns the field that an error of package value is about.
func fieldOf(pointer string, err error) problem.Field {
	if e, ok := errors.AsType[*value.Error](err); ok {
		return problem.Field{Pointer: pointer + pointerOf(e.Path), Detail: e.Reason}
	}
	return problem.Field{Pointer: pointer, Detail: err.Error()}
}

// pathIndex is a list index in the path of a value.Error.
var pathIndex = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[(\d+)\]`) })

// pointerOf converts a path such as items[2].price to /items/2/price.
func pointerOf(path string) string {
	if path == "" {
		return ""
	}
	var b strings.Builder
	for part := range strings.SplitSeq(pathIndex().ReplaceAllString(path, ".$1"), ".") {
		if part != "" {
			b.WriteString("/" + escape(part))
		}
	}
	return b.String()
}

// escape writes a name as a part of a JSON pointer.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// decodeInput converts the JSON value of an input. It is stricter than the conversion of
// cells: a number is not written as a text.
func decodeInput(v *spec.Variable, raw any) (any, error) {
	if raw == nil {
		if v.IsOptional() {
			return nil, nil
		}
		return nil, fmt.Errorf("it is null, expected %s", v.Type)
	}
	shaped, err := shape(v.Type, raw)
	if err != nil {
		return nil, err
	}
	return convert(v, shaped)
}

// shape checks the kind of a JSON value, and converts the forms that only clients of a
// server use: messages given as text, and media as base64.
func shape(t spec.Type, raw any) (any, error) {
	if raw == nil && t.Optional {
		return nil, nil
	}
	switch {
	case t.Elem != nil:
		return shapeList(*t.Elem, raw)
	case t.Custom != nil:
		return shapeRecord(t.Custom, raw)
	case t.Is("ChatMessage"):
		if text, ok := raw.(string); ok {
			return chat.Text(chat.User, text), nil
		}
	case t.Is("image") || t.Is("audio") || t.Is("video"):
		if text, ok := raw.(string); ok && !strings.HasPrefix(text, "data:") && !strings.HasPrefix(text, "{") {
			return text, nil // base64, or the name of a file, which package mediafile refuses
		}
		return DecodeMedia(raw)
	case t.IsMedia():
		return DecodeMedia(raw)
	case t.Is("int") || t.Is("float"):
		if !isNumber(raw) {
			return nil, fmt.Errorf("expected a number, not %s", value.Describe(raw))
		}
	case t.Is("boolean"):
		if _, ok := raw.(bool); !ok {
			return nil, fmt.Errorf("expected true or false, not %s", value.Describe(raw))
		}
	}
	return raw, nil
}

func isNumber(raw any) bool {
	switch raw.(type) {
	case int64, float64, json.Number:
		return true
	}
	return false
}

func shapeList(elem spec.Type, raw any) (any, error) {
	list, ok := raw.([]any)
	if !ok {
		return nil, fmt.Errorf("expected a list, not %s", value.Describe(raw))
	}
	shaped := make([]any, len(list))
	for i, item := range list {
		x, err := shape(elem, item)
		if err != nil {
			return nil, within(fmt.Sprintf("[%d]", i), err)
		}
		shaped[i] = x
	}
	return shaped, nil
}

func shapeRecord(t *spec.CustomType, raw any) (any, error) {
	r, ok := raw.(*value.Record)
	if !ok {
		return nil, fmt.Errorf("expected an object of type %s, not %s", t.ID, value.Describe(raw))
	}
	for _, p := range t.Properties {
		field, ok := r.Get(p.Name)
		if !ok {
			continue
		}
		x, err := shape(p.Type, field)
		if err != nil {
			return nil, within(p.Name, err)
		}
		r = r.With(p.Name, x)
	}
	return r, nil
}

// within adds where an error is to its path.
func within(part string, err error) error {
	e, ok := errors.AsType[*value.Error](err)
	if !ok {
		return &value.Error{Path: part, Reason: err.Error()}
	}
	return e.Within(part)
}

// DecodeMedia returns the bytes of a value: bytes, a data URL, {"base64": …}, the object
// {"bytes_base64": …, "mime": …, "filename": …} or its JSON text, or a text whose UTF-8
// bytes are the content.
func DecodeMedia(raw any) (any, error) {
	if data, ok := raw.([]byte); ok {
		return data, nil
	}
	if text, ok := raw.(string); ok {
		return decodeMediaText(text)
	}
	r, ok := raw.(*value.Record)
	if !ok {
		return nil, fmt.Errorf("expected bytes, not %s", value.Describe(raw))
	}
	for _, name := range []string{"base64", "bytes_base64"} {
		if _, ok := r.Get(name); ok {
			return decodeBase64(r, name)
		}
	}
	return nil, errors.New(`expected bytes as {"base64": "…"}`)
}

// decodeMediaText returns the bytes of a text: what it encodes, otherwise its UTF-8 bytes.
func decodeMediaText(text string) (any, error) {
	switch {
	case strings.HasPrefix(text, "data:"):
		data, _, err := DecodeDataURL(text)
		return data, err
	case strings.HasPrefix(text, "{"):
		parsed, _ := value.Parse(text) // other text is the content
		r, ok := parsed.(*value.Record)
		if !ok {
			break
		}
		if _, ok := r.Get("bytes_base64"); ok {
			return decodeBase64(r, "bytes_base64")
		}
	}
	return []byte(text), nil
}

func decodeBase64(r *value.Record, name string) (any, error) {
	v, _ := r.Get(name)
	text, ok := v.(string)
	if !ok {
		return nil, within(name, fmt.Errorf("expected base64, not %s", value.Describe(v)))
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, within(name, errors.New("it is not valid base64"))
	}
	return data, nil
}

// DecodeDataURL returns the content and the media type of a data URL.
func DecodeDataURL(text string) (data []byte, mediaType string, err error) {
	header, content, ok := strings.Cut(strings.TrimPrefix(text, "data:"), ",")
	if !ok {
		return nil, "", errors.New("the data URL has no comma")
	}
	mediaType, isBase64 := strings.CutSuffix(header, ";base64")
	if !isBase64 {
		plain, err := url.PathUnescape(content)
		return []byte(plain), mediaType, err
	}
	data, err = base64.StdEncoding.DecodeString(content)
	if err != nil {
		return nil, mediaType, errors.New("the data URL is not valid base64")
	}
	return data, mediaType, nil
}

// DecodeForm converts the fields of a form, which are texts, to the inputs of one row.
// Inputs for which have returns true may be missing.
func (f *Flow) DecodeForm(fields map[string][]string, files map[string][][]byte, have func(*spec.Variable) bool) (map[string]any, []problem.Field) {
	values := make(map[string]any, len(f.Inputs))
	var wrong []problem.Field
	for _, v := range f.Inputs {
		raw, ok := formValue(v, fields[v.ID], files[v.ID])
		if !ok {
			if !v.IsOptional() && (have == nil || !have(v)) {
				wrong = append(wrong, problem.Field{Pointer: "/" + escape(v.ID), Detail: fmt.Sprintf("the field is missing: expected %s", v.Type)})
			}
			continue
		}
		x, err := convert(v, raw)
		if err != nil {
			wrong = append(wrong, fieldOf("/"+escape(v.ID), err))
			continue
		}
		values[v.ID] = x
	}
	return values, wrong
}

// formValue returns the value of a field: a list of the texts or files for a list, JSON
// for other records and lists.
func formValue(v *spec.Variable, texts []string, files [][]byte) (any, bool) {
	var all []any
	for _, data := range files {
		all = append(all, data)
	}
	for _, text := range texts {
		all = append(all, value.ParseCell(text))
	}
	switch {
	case len(all) == 0:
		return nil, false
	case v.Type.IsList() && (len(files) > 0 || len(all) > 1):
		return all, true
	case v.Type.Is("ChatMessage") && len(texts) > 0 && !strings.HasPrefix(texts[0], "{"):
		return chat.Text(chat.User, texts[0]), true
	}
	return all[0], true
}

// Prompt converts the body {"prompt": text} of a flow that completes one text to an
// object of its inputs: the prompt is the first input that is missing.
func (f *Flow) Prompt(body *value.Record) *value.Record {
	prompt, ok := body.Get("prompt")
	if !ok || spec.VariableByID(f.Inputs, "prompt") != nil {
		return body
	}
	for _, v := range f.Inputs {
		if _, ok := body.Get(v.ID); !ok {
			return body.With(v.ID, prompt)
		}
	}
	return body
}

// Fetcher returns the content of an address that a client names, and its media type. It
// decides which addresses are allowed.
type Fetcher func(url string) (data []byte, mediaType string, err error)

// FetchMedia replaces addresses in a row by their content: texts of inputs of the types
// image, audio, video and file, of lists of these and of blocks of messages, that begin as a URL does.
func (f *Flow) FetchMedia(row *value.Record, fetch Fetcher) (*value.Record, error) {
	for _, v := range f.Inputs {
		raw, ok := row.Get(v.ID)
		if !ok {
			continue
		}
		fetched, err := fetchValue(v.Type, raw, fetch)
		if err != nil {
			return nil, err
		}
		row = row.With(v.ID, fetched)
	}
	return row, nil
}

func fetchValue(t spec.Type, raw any, fetch Fetcher) (any, error) {
	switch x := raw.(type) {
	case []any:
		if t.Elem == nil || !isFetched(*t.Elem) && !t.Elem.Is("ChatMessage") {
			return raw, nil
		}
		all := make([]any, len(x))
		for i, item := range x {
			var err error
			if all[i], err = fetchValue(*t.Elem, item, fetch); err != nil {
				return nil, err
			}
		}
		return all, nil
	case *value.Record:
		if t.Is("ChatMessage") {
			return fetchBlocks(x, fetch)
		}
	case string:
		if isFetched(t) && isURL(x) {
			data, _, err := fetch(x)
			return data, err
		}
	}
	return raw, nil
}

// fetchBlocks replaces the addresses of the media of a message.
func fetchBlocks(m *value.Record, fetch Fetcher) (any, error) {
	list, _ := m.Get("blocks")
	blocks, _ := list.([]any)
	if len(blocks) == 0 {
		return m, nil
	}
	fetched := slices.Clone(blocks)
	for i, item := range blocks {
		b, ok := item.(*value.Record)
		if !ok {
			continue
		}
		kind, _ := b.Get("type")
		content, _ := b.Get("content")
		address := content
		if r, ok := content.(*value.Record); ok && r.Len() == 1 {
			address, _ = r.Get("url")
		}
		name, _ := kind.(string)
		text, ok := address.(string)
		if !ok || !isFetched(spec.Type{Name: name}) || !isURL(text) {
			continue
		}
		data, _, err := fetch(text)
		if err != nil {
			return nil, err
		}
		fetched[i] = b.With("content", data)
	}
	return m.With("blocks", fetched), nil
}

// isFetched reports whether a text of a type may be an address. Bytes are never one.
func isFetched(t spec.Type) bool { return t.IsMedia() && !t.Is("bytes") }

func isURL(text string) bool {
	return (strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")) && !strings.ContainsAny(text, " \t\r\n")
}

// convert converts a value to the type of an input, and checks media by their content. A
// client cannot name files.
func convert(v *spec.Variable, raw any) (any, error) {
	t := v.Type
	t.Optional = v.IsOptional()
	loaded, err := (&mediafile.Source{}).Load(context.Background(), t, raw)
	if err != nil {
		return nil, err
	}
	if loaded == nil && t.Optional {
		return nil, nil
	}
	return value.Coerce(v.Type, loaded)
}
