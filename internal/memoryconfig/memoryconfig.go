// Package memoryconfig makes the configuration of a memory from its declaration in a
// document: policy, limits, context blocks, and what counts its tokens.
package memoryconfig

import (
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/internal/tokenizer/tokenfile"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
)

// Of returns the configuration of a declared memory, with the keys that its policy
// supports: the others have defaults too. Its context blocks have no models, so that
// programs that only read a memory call none.
func Of(m *spec.Memory, counter memory.Counter) memory.Config {
	cfg := memory.Config{ID: m.ID, Policy: m.Policy, Limits: m.Limits(), Turns: memory.TurnPolicy(m.Turns), TTL: time.Duration(m.TTL), Scope: memory.Scope(m.Scope), Counter: counter}
	row, _ := m.Row()
	if row.Supports("context") {
		cfg.Context = promptcontext.New(nil, Blocks(m, noModels())...)
	}
	if row.Supports("keep_system_first") {
		cfg.KeepSystemFirst = m.KeepSystemFirst
	}
	if row.Supports("shorten_tool_results") && m.ShortenToolResults > 0 {
		cfg.Compact = memory.Compaction{ToolResults: m.ShortenToolResults, KeepResults: m.KeepToolResults}
	}
	if row.Supports("compact_at") {
		cfg.Compact.At = m.CompactAt
	}
	if row.Supports("drop_images") {
		cfg.Compact.ImageRounds = m.DropImages
	}
	return cfg
}

// Counter returns what counts the tokens of a memory: the tokenizer that it names, else
// the encoding of the first model that reads the memory, else cl100k_base. It reads the
// vocabulary when it counts the first text.
func Counter(app *spec.Application, m *spec.Memory) memory.Counter {
	if m.Tokenizer.File != "" {
		return &fileCounter{path: m.Tokenizer.File}
	}
	return lazyCounter(encoding(app, m))
}

// encoding returns the name of the encoding that a memory counts with.
func encoding(app *spec.Application, m *spec.Memory) string {
	if m.Tokenizer.Encoding != "" {
		return m.Tokenizer.Encoding
	}
	if called := ModelsOf(app, m); len(called) > 0 {
		name, _ := tokenizer.ForModel(called[0].Name())
		return name
	}
	return tokenizer.Cl100k
}

// ModelsOf returns the model of each step that has a memory, in the order of the steps: a
// model of several steps more than once.
func ModelsOf(app *spec.Application, m *spec.Memory) []*spec.Model {
	var called []*spec.Model
	for _, doc := range app.Documents() {
		if doc.Application == nil {
			continue
		}
		for _, f := range doc.Application.Flows {
			for _, s := range f.Plan().Steps {
				if one := s.Model(); one != nil && s.Conversation() == m {
					called = append(called, one.Base())
				}
			}
		}
	}
	return called
}

// KeepsContext reports whether a memory stores the context of a question with it: if the
// document has prefix: stable, or leaves the choice and a model of the memory binds its reasoning to the
// requests before.
func KeepsContext(app *spec.Application, m *spec.Memory) bool {
	if !m.MovesContext() || m.Prefix == spec.PrefixFresh {
		return false
	}
	return m.Prefix == spec.PrefixStable || slices.ContainsFunc(ModelsOf(app, m), bindsPrefix)
}

// bindsPrefix reports whether a model, or one that answers in its place, binds its reasoning.
func bindsPrefix(m *spec.Model) bool {
	if known, ok := m.Known(); ok && known.Reasoning.BoundToPrefix {
		return true
	}
	return slices.ContainsFunc(m.Fallbacks, func(f spec.Ref[spec.ModelEntity]) bool { return f.To != nil && bindsPrefix(f.To.Base()) })
}

// lazyCounter loads its vocabulary when it counts the first message.
type lazyCounter string

// Count returns the number of tokens of text.
func (c lazyCounter) Count(text string) int {
	enc, err := tokenizer.For(string(c))
	if err != nil { // ForModel names only encodings that are embedded
		return len(text)
	}
	return enc.CountOnce(text) // models that are not called, such as mocks, count it again
}

// fileCounter reads its file when it counts the first message, and not again: the
// counts of a running application do not change.
type fileCounter struct {
	path string
	once sync.Once
	file *tokenfile.Tokenizer
}

// Count returns the number of tokens of text. If the file has disappeared since it was
// checked, that is the number of bytes, an upper limit.
func (c *fileCounter) Count(text string) int {
	c.once.Do(func() { c.file, _ = tokenfile.Load(c.path) })
	if c.file == nil {
		return len(text)
	}
	return c.file.Count(text)
}
