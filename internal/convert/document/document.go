package document

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v4"
)

// App is the document that is made.
type App struct {
	Comments    []string // comments above everything
	Id          string
	Description string
	Memories    []*Block
	Auths       []*Block
	Models      []*Block
	Tools       []*Block
	Types       []*Type // records, in the order in which they were met
	Flows       []*Flow
}

// Block is a mapping of the document, in order.
type Block struct {
	Entries []Entry
	Inline  bool // it is written in one line
}

// Entry is a key of a block. What it holds is a text, a formula, a number, a truth
// value, a block or a list of them, or a list in one line.
type Entry struct {
	Key   string
	Value any
	Note  string // a comment above the key
}

// NameList is a list of names, written in one line.
type NameList []string

// Number is a number as it is written.
type Number string

// Expression is an expression.
type Expression string

// EnvText is a text whose environment variables are meant.
type EnvText string

func (b *Block) Set(key string, value any) *Block {
	b.Entries = append(b.Entries, Entry{Key: key, Value: value})
	return b
}

// Note sets a comment above the last key.
func (b *Block) Note(format string, args ...any) *Block {
	last := &b.Entries[len(b.Entries)-1]
	if last.Note != "" {
		last.Note += "\n"
	}
	last.Note += fmt.Sprintf(format, args...)
	return b
}

// YAML is the whole document.
func (a *App) YAML() string {
	root := new(Block).Set("id", a.Id)
	if a.Description != "" {
		root.Set("description", a.Description)
	}
	var types []*Block
	for _, s := range a.Types {
		types = append(types, s.declaration())
	}
	var flows []*Block
	for _, f := range a.Flows {
		flows = append(flows, f.block())
	}
	for _, part := range []Entry{{Key: "memories", Value: a.Memories}, {Key: "auths", Value: a.Auths}, {Key: "models", Value: a.Models}, {Key: "types", Value: types}, {Key: "tools", Value: a.Tools}, {Key: "flows", Value: flows}} {
		if len(part.Value.([]*Block)) > 0 {
			root.Entries = append(root.Entries, part)
		}
	}
	// A tree of nodes that was made here can always be written, and a buffer takes it.
	text, _ := yaml.Dump(encoded(root), yaml.WithV3Defaults(), yaml.WithIndent(2), yaml.WithLineWidth(unfolded))
	head := a.Comments
	if bytes.Contains(text, []byte("LITERAL_DOLLAR")) {
		head = append(head, "${LITERAL_DOLLAR:-$} is a $ before a brace, which would begin an environment variable.")
	}
	var out bytes.Buffer
	for _, line := range head {
		fmt.Fprintf(&out, "# %s\n", OneLine(line))
	}
	out.Write(text)
	return spaced(out.String())
}
