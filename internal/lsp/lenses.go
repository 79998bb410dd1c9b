package lsp

import (
	"context"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/spec"
)

// runCommand is the editor's command of code lenses: it starts the program in a terminal.
const runCommand = "qtype.runInTerminal"

// codeLenses handles textDocument/codeLens: commands that run the flows of a document, or
// the tests and evaluations of a file.
func (s *server) codeLenses(_ context.Context, p protocol.TextDocumentParams) ([]protocol.CodeLens, error) {
	d, err := s.openDocument(p.TextDocument)
	if err != nil {
		return nil, err
	}
	lenses := []protocol.CodeLens{}
	roots := s.workspace.rootsOf(d.path)
	if len(roots) == 0 || !filepath.IsAbs(roots[0]) || isRemote(roots[0]) {
		return lenses, nil // not a file that a program can read
	}
	add := func(title string, at *outline.Node, inputs []protocol.InputToAsk, args ...string) {
		if slices.Contains(s.opts.Commands, args[0]) {
			run := protocol.ProgramToRun{Args: args, Cwd: filepath.Dir(roots[0]), Inputs: nonNil(inputs)}
			lenses = append(lenses, protocol.CodeLens{Range: d.rangeOf(at.Start, at.End),
				Command: protocol.Command{Title: title, Command: runCommand, Arguments: []protocol.ProgramToRun{run}}})
		}
	}
	syntax := s.syntaxOf(d)
	if k := s.lang().kindOf(d.path); k != nil {
		add("Run "+k.Command, &outline.Node{}, nil, k.Command, d.path)
		for _, m := range syntax.words[d.path] {
			if m.role == roleValue && m.field != nil && m.field.name == "name" && m.mapping.isA(reflect.TypeFor[spec.Test]()) {
				add("Run this test", m.node, nil, k.Command, d.path, "--run", "^"+regexp.QuoteMeta(m.text)+"$")
			}
		}
		return lenses, nil
	}
	for _, e := range syntax.entities {
		switch {
		case e.path != d.path || e.class.kind() != spec.KindFlow || e.id == "":
		case e.isConversational():
			add("Chat", e.idNode, syntax.inputsOf(e), "chat", roots[0], "--flow", e.id)
		default:
			add("Run", e.idNode, syntax.inputsOf(e), "run", roots[0], "--flow", e.id)
		}
	}
	return lenses, nil
}

// isA reports whether a mapping represents a struct. It accepts nil.
func (o *mappingNode) isA(t reflect.Type) bool {
	return o != nil && o.class != nil && o.class.goType == t
}

// isConversational reports whether a flow is a conversation.
func (e *entity) isConversational() bool {
	return e.node.Get("interface").GetText("type") == "Conversational"
}

// inputsOf returns the inputs of a flow that a command line needs: not those that are
// optional, nor the message of a conversation, which is typed later.
func (s *syntaxIndex) inputsOf(flow *entity) []protocol.InputToAsk {
	var asked []protocol.InputToAsk
	for _, id := range flow.ids("inputs") {
		kind := "text"
		if v := s.findEntity(id, reflect.TypeFor[*spec.Variable](), flow.mappingNode); v != nil {
			kind = v.node.GetText("type")
		}
		if strings.HasSuffix(kind, "?") || flow.isConversational() && kind == "ChatMessage" {
			continue
		}
		asked = append(asked, protocol.InputToAsk{Name: id, Type: kind})
	}
	return asked
}
