package catalogue

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

//go:generate go run ./generate

// Date is the day on which the built-in catalogue was collected.
const Date = "2026-11-28"

// compressed is models.jsonl, written by generate.
//
//go:embed models.jsonl.gz
var compressed []byte

// loaded reports that the built-in catalogue was read.
var loaded atomic.Bool

// Loaded reports whether the built-in catalogue was read: commands that need no model must
// not read it.
func Loaded() bool { return loaded.Load() }

// builtin returns the rows of the built-in catalogue.
var builtin = sync.OnceValue(func() *index {
	loaded.Store(true)
	x, err := readLines(compressed)
	if err != nil {
		panic("catalogue: " + err.Error()) // a test reads the embedded file
	}
	return x
})

// line is what the index needs of a line of models.jsonl.
type line struct {
	Provider  string   `json:"provider"`
	ID        string   `json:"id"`
	Aliases   []string `json:"aliases"`
	Snapshots []string `json:"snapshots"`
}

// readLines reads the names of the rows of a compressed file of JSON lines.
func readLines(compressed []byte) (*index, error) {
	unzip, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(unzip)
	if err != nil {
		return nil, err
	}
	x := newIndex()
	for number := 1; len(text) > 0; number++ {
		var one []byte
		one, text, _ = bytes.Cut(text, []byte("\n"))
		if err := x.addLine(one); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	return x, nil
}

// addLine adds a line of models.jsonl: a model, or a server if it has no id. The names are
// the first keys of a line, so that only these are decoded.
func (x *index) addLine(text []byte) error {
	names, _, isModel := bytes.Cut(text, []byte(`,"kind":`))
	if !isModel {
		var s Server
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
		x.servers = append(x.servers, s)
		return nil
	}
	var l line
	if err := json.Unmarshal(append(names[:len(names):len(names)], '}'), &l); err != nil {
		return err
	}
	x.addRow(&row{provider: l.Provider, id: l.ID, text: text}, append(l.Aliases, l.Snapshots...))
	return nil
}
