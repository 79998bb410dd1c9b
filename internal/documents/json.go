package documents

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/documents/format"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// jsonFile reads one file as LlamaIndex's JSONReader does, with the same texts.
type jsonFile struct {
	args   *spec.JSONArgs
	loader *spec.JSONLoaderArgs
	limits format.Limits
}

func newJSONFile(args *spec.JSONArgs, loader *spec.JSONLoaderArgs, env Env) (Source, error) {
	return &jsonFile{args: args, loader: loader, limits: env.Limits}, nil
}

// Read reads a document, or one from each line of a file in JSON Lines.
func (j *jsonFile) Read(ctx context.Context, emit Emit) error {
	path := j.loader.InputFile
	in, err := remotefs.Open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // closing a file that was only read cannot lose data
	if j.args.IsJSONL {
		return eachLine(ctx, in, j.limits.MaxInput(), func(number int, line string) error {
			doc, err := j.document(line, fmt.Sprintf("_line_%d", number))
			if err != nil {
				err = fmt.Errorf("%s:%d: %w", remotefs.Redacted(path), number, err)
			}
			return emit(doc, err)
		})
	}
	data, err := readLimited(in, path, j.limits.MaxInput())
	if err != nil {
		return err
	}
	doc, err := j.document(string(data), "")
	if err != nil {
		return fmt.Errorf("%s: %w", remotefs.Redacted(path), err)
	}
	return emit(doc, nil)
}

// eachLine calls f with each line that is not blank, and its number. Only a line is in
// memory; one that is longer than the limit is an error.
func eachLine(ctx context.Context, in io.Reader, limit int64, f func(number int, line string) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), int(min(limit, math.MaxInt32)))
	number := 0
	for lines.Scan() {
		number++
		line := strings.TrimPrefix(lines.Text(), "\uFEFF")
		if strings.TrimSpace(line) == "" {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := f(number, line); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d is longer than %d MB", number+1, limit>>20)
	}
	return lines.Err()
}

// document makes a document of a JSON text.
func (j *jsonFile) document(text, part string) (*Document, error) {
	v, err := value.Parse(strings.TrimPrefix(text, "\uFEFF"))
	if err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	metadata := maps.Clone(j.loader.ExtraInfo)
	if metadata == nil {
		metadata = map[string]any{}
	}
	doc := &Document{ID: documentID(filepath.ToSlash(j.loader.InputFile) + part), Name: baseName(j.loader.InputFile), Metadata: metadata}
	if _, remote := remotefs.Remote(j.loader.InputFile); remote {
		doc.URI = remotefs.Redacted(j.loader.InputFile)
	}
	switch {
	case j.args.LevelsBack != nil:
		doc.Text = strings.Join(j.leaves(nil, v, nil), "\n")
	case j.args.CleanJSON:
		doc.Text = cleanJSON(j.dump(v, true))
	default:
		doc.Text = j.dump(v, false)
	}
	return doc, nil
}

// onlyBrackets matches the lines that clean_json removes.
var onlyBrackets = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[{}\[\],]*$`) })

func cleanJSON(text string) string {
	var kept []string
	for line := range strings.SplitSeq(text, "\n") {
		if !onlyBrackets().MatchString(line) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// leaves appends a line for each value except lists and objects, with the keys above it.
func (j *jsonFile) leaves(lines []string, v any, keys []string) []string {
	record, isRecord := v.(*value.Record)
	list, isList := v.([]any)
	if !isRecord && !isList {
		return append(lines, j.line(keys, pythonText(v)))
	}
	if limit := j.args.CollapseLength; limit != nil {
		if text := j.dump(v, false); utf8.RuneCountInString(text) <= *limit {
			return append(lines, j.line(keys, text))
		}
	}
	for _, item := range list {
		lines = j.leaves(lines, item, keys)
	}
	if isRecord {
		for key, item := range record.All() {
			lines = j.leaves(lines, item, append(keys[:len(keys):len(keys)], key))
		}
	}
	return lines
}

// line returns a value after the last of its keys.
func (j *jsonFile) line(keys []string, text string) string {
	if n := *j.args.LevelsBack; n > 0 && n < len(keys) {
		keys = keys[len(keys)-n:]
	}
	return strings.Join(append(keys[:len(keys):len(keys)], text), " ")
}

// pythonText returns str(v) of a scalar.
func pythonText(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		return v
	}
	return dumpNumber(v)
}

// dump returns json.dumps(v) of Python; with lines it has indent=0.
func (j *jsonFile) dump(v any, lines bool) string {
	d := dumper{ascii: j.args.EnsureASCII, lines: lines}
	d.value(v)
	return d.b.String()
}

// dumper writes JSON as Python's module json does.
type dumper struct {
	b     strings.Builder
	ascii bool // other characters are escaped
	lines bool // a line for each item
}

func (d *dumper) value(v any) {
	switch v := v.(type) {
	case nil:
		d.b.WriteString("null")
	case bool:
		d.b.WriteString(strconv.FormatBool(v))
	case string:
		d.text(v)
	case []any:
		d.collection('[', ']', len(v), func(i int) { d.value(v[i]) })
	case *value.Record:
		names := v.Names()
		d.collection('{', '}', len(names), func(i int) {
			d.text(names[i])
			d.b.WriteString(": ")
			item, _ := v.Get(names[i])
			d.value(item)
		})
	default:
		d.b.WriteString(dumpNumber(v))
	}
}

// collection writes brackets around items.
func (d *dumper) collection(open, end byte, n int, item func(int)) {
	d.b.WriteByte(open)
	for i := range n {
		switch {
		case d.lines && i > 0:
			d.b.WriteString(",\n")
		case d.lines:
			d.b.WriteByte('\n')
		case i > 0:
			d.b.WriteString(", ")
		}
		item(i)
	}
	if d.lines && n > 0 {
		d.b.WriteByte('\n')
	}
	d.b.WriteByte(end)
}

// text writes a string.
func (d *dumper) text(s string) {
	d.b.WriteByte('"')
	for _, r := range s {
		switch {
		case strings.ContainsRune(`"\`, r):
			d.b.WriteByte('\\')
			d.b.WriteRune(r)
		case strings.ContainsRune("\n\r\t\b\f", r):
			d.b.WriteByte('\\')
			d.b.WriteByte(map[rune]byte{'\n': 'n', '\r': 'r', '\t': 't', '\b': 'b', '\f': 'f'}[r])
		case r < ' ' || d.ascii && r >= 0x7f && r <= 0xffff:
			if r == 0x7f {
				d.b.WriteByte(0x7f)
				continue
			}
			fmt.Fprintf(&d.b, `\u%04x`, r)
		case d.ascii && r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&d.b, `\u%04x\u%04x`, high, low)
		default:
			d.b.WriteRune(r)
		}
	}
	d.b.WriteByte('"')
}

// dumpNumber writes a number as Python does: floats have a dot or an exponent.
func dumpNumber(v any) string {
	switch n := v.(type) {
	case json.Number:
		return n.String()
	case float64:
		return value.Text(n)
	}
	return fmt.Sprint(v)
}
