package playground

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/memoryconfig"
	"github.com/qtype-dev/qtype/internal/memoryview/replay"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
)

// maxLines limits a transcript: the page has a position for each line.
const maxLines = 2000

// replayParams are the parameters of replay.
type replayParams struct {
	Text       string `json:"text"`       // the document
	Memory     string `json:"memory"`     // its id
	Transcript string `json:"transcript"` // JSON lines, as of `qtype memory replay`
	Line       int    `json:"line"`       // whose window is returned, 1-based; 0 for the last one
}

// replayed is the result of replay.
type replayed struct {
	Lines []replayedLine  `json:"lines"`
	Shown json.RawMessage `json:"shown,omitempty"` // the window after the line, as `--format json` writes it
	Error *replayError    `json:"error,omitempty"` // why the replay ended before the end
}

// replayedLine is the state of the memory after a line.
type replayedLine struct {
	Line    int    `json:"line"`
	Tokens  int    `json:"tokens"`   // of the line's message
	Used    int    `json:"used"`     // of the limit
	Limit   int    `json:"limit"`    // 0 for none
	Unit    string `json:"unit"`     // of used and limit
	Count   int    `json:"messages"` // in the window
	Evicted int    `json:"evicted"`  // messages that left the window with this line
}

// replayError is an error in a line of a transcript.
type replayError struct {
	Line    int    `json:"line"`
	Message string `json:"message"`
}

// replay feeds a transcript through a memory of a document.
func (*Session) replay(ctx context.Context, p replayParams) (any, error) {
	if n := len(p.Transcript); n > maxTranscript {
		return nil, fmt.Errorf("the transcript has %d bytes; the playground takes at most %d", n, maxTranscript)
	}
	if n := strings.Count(p.Transcript, "\n") + 1; n > maxLines {
		return nil, fmt.Errorf("the transcript has %d lines; the playground takes at most %d", n, maxLines)
	}
	doc, err := read(ctx, p.Text)
	if err != nil {
		return nil, err
	}
	declared := doc.Application.Memories
	i := slices.IndexFunc(declared, func(m *spec.Memory) bool { return m.ID == p.Memory })
	if i < 0 {
		return nil, fmt.Errorf("the document has no memory %q", p.Memory)
	}
	cfg := memoryconfig.Of(declared[i], memoryconfig.Counter(doc.Application, declared[i]))
	made := &collector{want: p.Line, done: replayed{Lines: []replayedLine{}}}
	err = replay.Run(ctx, cfg, strings.NewReader(p.Transcript), made, replay.Options{
		Each: true, Format: replay.JSON, Window: func(w memory.Window) { made.windows = append(made.windows, w) },
	})
	if wrong := new(replay.LineError); errors.As(err, &wrong) {
		made.done.Error = &replayError{Line: wrong.Line, Message: wrong.Err.Error()}
		err = nil
	}
	return &made.done, err
}

// collector reads the output of a replay, of which it keeps the numbers and one window:
// all windows together may be large.
type collector struct {
	want    int
	windows []memory.Window // one for each line of output
	partial []byte          // of a line
	done    replayed
}

// Write implements io.Writer.
func (c *collector) Write(p []byte) (int, error) {
	for part := range bytes.SplitAfterSeq(p, []byte("\n")) {
		c.partial = append(c.partial, part...)
		if !bytes.HasSuffix(part, []byte("\n")) {
			continue
		}
		if err := c.add(bytes.TrimSpace(c.partial)); err != nil {
			return 0, err
		}
		c.partial = c.partial[:0]
	}
	return len(p), nil
}

// add adds a line of output.
func (c *collector) add(raw []byte) error {
	var line struct {
		Line    int               `json:"line"`
		Tokens  int               `json:"tokens"`
		Window  []json.RawMessage `json:"window"`
		Evicted []json.RawMessage `json:"evicted"`
	}
	if err := json.Unmarshal(raw, &line); err != nil {
		return err
	}
	w := c.windows[len(c.done.Lines)]
	c.done.Lines = append(c.done.Lines, replayedLine{
		Line: line.Line, Tokens: line.Tokens, Used: w.Used, Limit: w.Limit, Unit: string(w.Unit), Count: len(line.Window), Evicted: len(line.Evicted),
	})
	if c.want <= 0 || line.Line <= c.want {
		c.done.Shown = slices.Clone(raw)
	}
	return nil
}
