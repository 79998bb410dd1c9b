package splitter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

// jsonText is JSONNodeParser: a chunk is an element of a list, or the whole object. Its
// text has a line for each value: the keys that lead to it and the value. The range of a
// chunk is that of the element.
type jsonText struct{}

// Limits of a JSON text.
const (
	maxNesting = 500     // of nested objects and lists
	maxGrowth  = 32      // of the lines, which repeat keys, against the text
	freeGrowth = 1 << 20 // bytes of lines that any text may have
)

// Split implements Splitter.
func (jsonText) Split(ctx context.Context, d Document) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		r := &jsonReader{text: d.Text, decoder: json.NewDecoder(strings.NewReader(d.Text)), left: maxGrowth*len(d.Text) + freeGrowth}
		r.decoder.UseNumber()
		if err := r.read(ctx, yield); err != nil && !errors.Is(err, errStopped) {
			yield(Chunk{}, fmt.Errorf("the content is not a JSON object or list: %w", err))
		}
	}
}

// errStopped ends reading when the caller wants no more chunks.
var errStopped = errors.New("stopped")

type jsonReader struct {
	text    string
	decoder *json.Decoder
	lines   strings.Builder // of the current chunk
	left    int             // how many bytes the lines may still have
}

// read yields the chunks of the text.
func (r *jsonReader) read(ctx context.Context, yield func(Chunk, error) bool) error {
	first, err := r.decoder.Token()
	if err != nil {
		return syntaxError(err)
	}
	switch first {
	case json.Delim('{'):
		start := int(r.decoder.InputOffset()) - 1
		if err := r.object(nil); err != nil {
			return err
		}
		if !r.emit(start, yield) {
			return errStopped
		}
	case json.Delim('['):
		for r.decoder.More() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			start := r.next()
			if err := r.value(nil); err != nil {
				return err
			}
			if !r.emit(start, yield) {
				return errStopped
			}
		}
		if _, err := r.decoder.Token(); err != nil {
			return syntaxError(err)
		}
	default:
		return errors.New("it is a single value")
	}
	if _, err := r.decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is text after the end")
	}
	return nil
}

// next returns the offset of the next value.
func (r *jsonReader) next() int {
	at := int(r.decoder.InputOffset())
	return at + len(r.text[at:]) - len(strings.TrimLeft(r.text[at:], " \t\r\n,:"))
}

// emit yields the lines as a chunk.
func (r *jsonReader) emit(start int, yield func(Chunk, error) bool) bool {
	text := strings.TrimSuffix(r.lines.String(), "\n")
	r.lines.Reset()
	return yield(Chunk{Text: text, Start: start, End: int(r.decoder.InputOffset())}, nil)
}

// value writes the lines of the next value.
func (r *jsonReader) value(path []string) error {
	token, err := r.decoder.Token()
	if err != nil {
		return syntaxError(err)
	}
	switch token {
	case json.Delim('{'):
		return r.object(path)
	case json.Delim('['):
		if len(path) > maxNesting {
			return errors.New("it is nested too deeply")
		}
		for r.decoder.More() {
			if err := r.value(path); err != nil {
				return err
			}
		}
		_, err := r.decoder.Token()
		return syntaxError(err)
	}
	line := strings.Join(append(path[:len(path):len(path)], scalar(token)), " ")
	if r.left -= len(line); r.left < 0 {
		return errors.New("its keys are repeated too often")
	}
	r.lines.WriteString(line)
	r.lines.WriteByte('\n')
	return nil
}

// object writes the lines of an object, whose opening brace was read.
func (r *jsonReader) object(path []string) error {
	if len(path) > maxNesting {
		return errors.New("it is nested too deeply")
	}
	for r.decoder.More() {
		key, err := r.decoder.Token()
		if err != nil {
			return syntaxError(err)
		}
		name, _ := key.(string)
		if err := r.value(append(path[:len(path):len(path)], name)); err != nil {
			return err
		}
	}
	_, err := r.decoder.Token()
	return syntaxError(err)
}

// scalar formats a value as Python does.
func scalar(token json.Token) string {
	if n, ok := token.(json.Number); ok {
		if f, err := n.Float64(); err == nil && strings.ContainsAny(n.String(), ".eE") {
			return PythonText(f)
		}
		return n.String()
	}
	return PythonText(token)
}

// syntaxError returns an error of the decoder for users.
func syntaxError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the text ends too early")
	}
	return err
}
