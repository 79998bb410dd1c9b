package redact

import (
	"io"
	"sync"
)

// Writer writes to another writer without secrets, also if a secret is divided over several
// writes. It is safe for concurrent use.
type Writer struct {
	redactor *Redactor
	mu       sync.Mutex
	to       io.Writer
	held     []byte // the beginning of what may be a secret
	out      []byte // is used again
}

// NewWriter returns a Writer. The end of a text that may be the beginning of a secret is
// written with the text that follows it; Flush writes it at once.
func (r *Redactor) NewWriter(to io.Writer) *Writer { return &Writer{redactor: r, to: to} }

// Write writes a text. A text that ends a line is written completely.
func (w *Writer) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.redactor.patterns()
	if p == nil && len(w.held) == 0 {
		return w.to.Write(text)
	}
	whole := append(w.held, text...) //nolint:gocritic // held is replaced below
	ends := len(text) > 0 && (text[len(text)-1] == '\n' || text[len(text)-1] == '\r')
	return len(text), w.write(p, whole, ends)
}

// write writes a text as far as it is complete.
func (w *Writer) write(p *patterns, whole []byte, final bool) error {
	held := 0
	if p == nil {
		w.out = append(w.out[:0], whole...)
	} else {
		w.out, held = p.replace(w.out[:0], whole, final)
	}
	w.held = append(w.held[:0], whole[len(whole)-held:]...)
	if len(w.out) == 0 {
		return nil
	}
	_, err := w.to.Write(w.out)
	return err
}

// Unwrap returns the writer to which a Writer writes, such as a terminal; any other writer
// is returned unchanged.
func Unwrap(w io.Writer) io.Writer {
	if redacting, ok := w.(*Writer); ok {
		return redacting.to
	}
	return w
}

// Rewrap returns a writer that writes what change makes of the writer below a Writer, with the
// same secrets replaced; any other writer is only changed.
func Rewrap(w io.Writer, change func(io.Writer) io.Writer) io.Writer {
	if redacting, ok := w.(*Writer); ok {
		return redacting.redactor.NewWriter(change(redacting.to))
	}
	return change(w)
}

// Flush writes what may be the beginning of a secret.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.held) == 0 {
		return nil
	}
	return w.write(w.redactor.patterns(), append([]byte(nil), w.held...), true)
}

// Stream replaces the secrets of a text that comes in parts. It is not safe for concurrent use.
type Stream struct {
	redactor *Redactor
	held     []byte
}

// NewStream returns a Stream.
func (r *Redactor) NewStream() *Stream { return &Stream{redactor: r} }

// Next returns what can be shown after a further part.
func (s *Stream) Next(part string) string {
	p := s.redactor.patterns()
	if p == nil && len(s.held) == 0 {
		return part
	}
	whole := append(s.held, part...) //nolint:gocritic // held is replaced below
	if p == nil {
		s.held = nil
		return string(whole)
	}
	out, held := p.replace(nil, whole, false)
	s.held = append([]byte(nil), whole[len(whole)-held:]...)
	return string(out)
}

// End returns the rest of the text.
func (s *Stream) End() string {
	rest := s.held
	s.held = nil
	return s.redactor.String(string(rest))
}
