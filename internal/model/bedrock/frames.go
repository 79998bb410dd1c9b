package bedrock

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/aws/smithy-go/eventstream"

	"github.com/qtype-dev/qtype/internal/model/wire"
)

// frames reads the event stream of AWS. A record is {"type": payload}, with the name of
// the event or of the error as type.
type frames struct {
	from  *bufio.Reader
	count int
	head  []byte // what came instead of a stream
}

func newFrames(r io.Reader) wire.RecordReader { return &frames{from: bufio.NewReader(r)} }

// Begun returns the number of records, and what came before the first one.
func (f *frames) Begun() (records int, instead []byte) { return f.count, f.head }

// Next returns the next record; io.EOF at the end.
func (f *frames) Next() ([]byte, error) {
	if f.count == 0 {
		// The first byte of a frame belongs to its length, which is less than 16 MiB.
		if first, err := f.from.Peek(1); err == nil && first[0] != 0 {
			f.head, _ = f.from.Peek(1 << 10) // a shorter body is good enough
			return nil, io.EOF
		}
	}
	m, err := eventstream.NewDecoder().Decode(f.from, nil)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, err
		}
		return nil, fmt.Errorf("damaged event stream: %w", err)
	}
	f.count++
	return record(m)
}

// record converts a frame to JSON.
func record(m eventstream.Message) ([]byte, error) {
	text := func(name string) string {
		if v, ok := m.Headers.Get(name).(eventstream.StringValue); ok {
			return string(v)
		}
		return ""
	}
	payload := bytes.TrimSpace(m.Payload)
	kind := text(":event-type")
	switch text(":message-type") {
	case "exception":
		kind = text(":exception-type")
	case "error": // without a payload
		kind = text(":error-code")
		payload, _ = json.Marshal(map[string]string{"message": text(":error-message")}) // a text always encodes
	}
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	name, _ := json.Marshal(kind) // a text always encodes
	return fmt.Appendf(nil, "{%s:%s}", name, payload), nil
}
