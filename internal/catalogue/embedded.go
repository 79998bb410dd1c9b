package catalogue

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
)

//go:generate go run ./generate

// Date is the day on which the built-in catalogue was collected.
const Date = "2026-11-28"

// archive has the lines of models.jsonl, a file for each provider; it is written by generate.
//
//go:embed models.zip
var archive []byte

// library is the built-in catalogue. The rows of a provider are read when one of them is looked
// up: most documents name the models of one.
type library struct {
	providers map[string]func() *index
	all       func() *index // the rows of all providers, and the servers
}

// builtin returns the built-in catalogue. Commands that need no model must not call it.
var builtin = sync.OnceValue(func() *library {
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		panic("catalogue: " + err.Error()) // a test reads the embedded file
	}
	l := &library{providers: map[string]func() *index{}}
	for _, f := range files.File {
		l.providers[strings.TrimSuffix(f.Name, ".jsonl")] = sync.OnceValue(func() *index { return mustRead(newIndex(), f) })
	}
	l.all = sync.OnceValue(func() *index {
		x := newIndex()
		for _, f := range files.File {
			mustRead(x, f)
		}
		return x
	})
	return l
})

// find returns the model of a spelling, nil for none.
func (l *library) find(s spelling) *Model {
	if s.provider == "" {
		return l.all().find(s)
	}
	if rows, ok := l.providers[s.provider]; ok {
		return rows().find(s)
	}
	return nil
}

// serversFile is the file of the archive with the hosts of other providers' protocols.
const serversFile = "servers"

// mustRead adds the lines of a file of the archive to an index.
func mustRead(x *index, f *zip.File) *index {
	in, err := f.Open()
	if err == nil {
		text := make([]byte, f.UncompressedSize64)
		if _, err = io.ReadFull(in, text); err == nil {
			err = x.addLines(text)
		}
	}
	if err != nil {
		panic(fmt.Sprintf("catalogue: %s: %v", f.Name, err)) // a test reads the embedded file
	}
	return x
}

// line is what the index needs of a line of models.jsonl.
type line struct {
	Provider  string   `json:"provider"`
	ID        string   `json:"id"`
	Aliases   []string `json:"aliases"`
	Snapshots []string `json:"snapshots"`
}

// addLines adds the rows of JSON lines.
func (x *index) addLines(text []byte) error {
	for number := 1; len(text) > 0; number++ {
		var one []byte
		one, text, _ = bytes.Cut(text, []byte("\n"))
		if err := x.addLine(one); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	return nil
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
