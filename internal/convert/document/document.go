// Package document builds the QType document of a conversion: its entities, the
// data flow between its steps, the types of its variables, and its YAML text.
package document

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v4"
)

// App is the application that is built.
type App struct {
	Comments    []string // at the top of the file
	ID          string   // id of the application
	Description string   // may be empty
	Memories    []*Block // section memories
	Auths       []*Block // section auths
	Models      []*Block // section models
	Tools       []*Block // section tools
	CustomTypes []*Type  // custom types in the order of discovery
	Flows       []*Flow  // the first is the main flow

	Evaluation *Evaluation // of the application; nil for none
}

// Block is a mapping of the document with ordered keys.
type Block struct {
	Entries []Entry // in order
	Inline  bool    // written on one line
}

// Entry is a key of a Block. Its value is a string, an int, an Expression, a
// Number, an EnvText, a NameList, a *Block, a []*Block or an []any of these.
type Entry struct {
	Key   string // the key
	Value any    // see Entry
	Note  string // comment above the key
}

// NameList is a list of names, written on one line.
type NameList []string

// Number is a number as written in the file.
type Number string

// Expression is an expression of the language.
type Expression string

// EnvText is a string whose ${VARIABLES} are expanded.
type EnvText string

// Set appends an entry.
func (b *Block) Set(key string, value any) *Block {
	b.Entries = append(b.Entries, Entry{Key: key, Value: value})
	return b
}

// Note adds a line to the comment above the last key.
func (b *Block) Note(format string, args ...any) *Block {
	last := &b.Entries[len(b.Entries)-1]
	if last.Note != "" {
		last.Note += "\n"
	}
	last.Note += fmt.Sprintf(format, args...)
	return b
}

// YAML returns the text of the document.
func (a *App) YAML() string {
	root := new(Block).Set("id", a.ID)
	if a.Description != "" {
		root.Set("description", a.Description)
	}
	var types []*Block
	for _, s := range a.CustomTypes {
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
	// Nodes made here can always be dumped, so there is no error.
	text, _ := yaml.Dump(encode(root), yaml.WithV3Defaults(), yaml.WithIndent(2), yaml.WithLineWidth(maxLineWidth))
	head := a.Comments
	if bytes.Contains(text, []byte("LITERAL_DOLLAR")) {
		head = append(head, "${LITERAL_DOLLAR:-$} is a $ before a brace, which would begin an environment variable.")
	}
	var out bytes.Buffer
	for _, line := range head {
		fmt.Fprintf(&out, "# %s\n", OneLine(line))
	}
	out.Write(text)
	return addBlankLines(out.String())
}
