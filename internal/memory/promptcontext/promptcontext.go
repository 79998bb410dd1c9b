// Package promptcontext assembles what a memory sends to the model in addition
// to chat messages: pinned texts, the session's variables, a running summary of
// evicted messages, and evicted messages that are similar to the newest one.
//
//	memory.New(memory.Config{…, Context: promptcontext.New(nil,
//		promptcontext.Block{Kind: promptcontext.Pinned, Text: "The customer is on plan Gold."})}, store)
//
// The blocks share the tokens that chat_history_token_ratio and the messages
// leave of token_limit. If they are too large together, the block with the
// highest priority number is cut first; a block of priority 0 is never cut.
//
// Summary and vectors are values of the session and entries of a companion
// session in the memory's own store, so that every store can keep them.
package promptcontext

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// The kinds of context blocks.
const (
	Pinned    store.BlockKind = "pinned"    // a text that is always sent
	Variables store.BlockKind = "variables" // the session's named values
	Summary   store.BlockKind = "summary"   // a running summary of evicted messages
	Retrieval store.BlockKind = "retrieval" // the evicted messages most similar to the newest user message
	Facts     store.BlockKind = "facts"     // what a model extracted from the messages of users, each with its source

	Observations store.BlockKind = "observations" // a log of dated statements, each with the messages that prove it
)

// Block declares a context block.
type Block struct {
	Kind     store.BlockKind // what it contains
	Priority int             // the highest number is cut first; 0 is never cut
	Scope    memory.Scope    // whose variables, messages or facts it has; empty: those of the memory's scope

	Text string // pinned: the text

	Summarizer   Summarizer // summary: writes it; required
	MaxTokens    int        // summary, observations, facts: the maximal size; 0: 2,000
	Instructions string     // summary: how to write it; empty: DefaultInstructions
	InputTokens  int        // summary: the most tokens of messages in one call, more follow with the next; 0: 16,000

	Extractor Extractor // facts: finds them in messages; required. Instructions and InputTokens are as for a summary
	MaxFacts  int       // facts: the most that are kept; 0: 100

	Observer Observer // observations: finds statements in messages; required. Instructions and InputTokens are as for a summary

	Embedder Embedder // retrieval: computes vectors of texts; nil compares words only
	TopK     int      // retrieval: the most passages of messages; 0: as many as fit 4,000 tokens. facts: the most that a call sends; 0: all
	MinScore float64  // retrieval: the least score of a passage
}

const (
	defaultSummaryTokens = 2_000
	defaultInputTokens   = 16_000
	defaultMaxFacts      = 100
)

// Summarizer adds messages to a running summary, usually with a model. It is
// safe for concurrent use.
type Summarizer interface {
	// Summarize returns the new summary. After an error the old one stays, and the
	// next call gets the same messages.
	Summarize(ctx context.Context, r SummaryRequest) (string, error)
}

// SummaryRequest is the input of one call of a Summarizer.
type SummaryRequest struct {
	Instructions string         // how the summary is to be written
	Summary      string         // the summary so far, empty for none
	Messages     []chat.Message // the messages to add, oldest first; not to be modified
	MaxTokens    int            // the maximal size of the new summary; a longer one is cut at its end
	Room         int            // the most tokens that the messages have together; a single one may have more
}

// Model is a chat model that writes summaries, facts and observations.
type Model interface {
	Summarizer
	Extractor
	Observer
}

// Embedder computes vectors of texts. It is safe for concurrent use.
type Embedder interface {
	// Name identifies the model: vectors of different models cannot be compared,
	// so they are computed again under another name. An error means that the
	// model cannot be used.
	Name() (string, error)
	// Embed returns a vector for each text, in their order, all of one length. The texts are
	// questions or the texts that may answer them.
	Embed(ctx context.Context, texts []string, questions bool) ([][]float32, error)
}

// source is a memory.ContextSource.
type source struct {
	blocks       []Block
	err          error
	summary      *Block // nil for none
	retrieval    *Block // nil for none
	facts        *Block // nil for none
	observations *Block // nil for none
	vectors      vectorCache
	words        wordCache
	ahead        aheadJobs
	storing      aheadJobs
	sizes        sizeCache
	warn         func(string)
}

// New returns a context with the given blocks, in the order in which they are
// sent; nil without blocks. warn receives, in one line each and once, why a
// summary or a retrieval is out of date; it may be nil.
func New(warn func(string), blocks ...Block) memory.ContextSource {
	if len(blocks) == 0 {
		return nil
	}
	c := &source{blocks: slices.Clone(blocks), warn: warnOnce(warn)}
	for i := range c.blocks {
		b := &c.blocks[i]
		if err := b.complete(); err != nil && c.err == nil {
			c.err = fmt.Errorf("context block %d: %w", i+1, err)
		}
		if b.Kind != Pinned && slices.ContainsFunc(c.blocks[:i], func(o Block) bool { return o.Kind == b.Kind && (b.Kind != Variables || o.Scope == b.Scope) }) && c.err == nil {
			c.err = fmt.Errorf("context block %d: only one block of kind %s is possible", i+1, b.Kind)
		}
		switch b.Kind {
		case Summary:
			c.summary = b
		case Retrieval:
			c.retrieval = b
		case Facts:
			c.facts = b
		case Observations:
			c.observations = b
		}
	}
	return c
}

func (c *source) Check() error { return c.err }

// complete sets the defaults of a block, or returns an error for an invalid one.
func (b *Block) complete() error {
	switch {
	case b.Priority < 0:
		return fmt.Errorf("the priority must not be negative, not %d", b.Priority)
	case b.Kind == Summary && b.Summarizer == nil:
		return errors.New("a summary needs a summarizer")
	case b.Kind == Facts && b.Extractor == nil:
		return errors.New("facts need an extractor")
	case b.Kind == Observations && b.Observer == nil:
		return errors.New("observations need an observer")
	case b.MaxTokens < 0 || b.TopK < 0 || b.InputTokens < 0 || b.MaxFacts < 0:
		return errors.New("the limits of a block must be positive")
	case !slices.Contains([]store.BlockKind{Pinned, Variables, Summary, Retrieval, Facts, Observations}, b.Kind):
		return fmt.Errorf("unknown kind %q: it is pinned, variables, summary, retrieval, facts or observations", b.Kind)
	}
	b.Text = strings.ToValidUTF8(b.Text, "\uFFFD")
	for value, fallback := range map[*int]int{&b.MaxTokens: defaultSummaryTokens, &b.InputTokens: defaultInputTokens, &b.MaxFacts: defaultMaxFacts} {
		if *value == 0 {
			*value = fallback
		}
	}
	if b.Instructions == "" {
		b.Instructions = cmp.Or(map[store.BlockKind]string{Facts: FactInstructions, Observations: ObservationInstructions}[b.Kind], DefaultInstructions)
	}
	return nil
}

// turnContext is the context of one turn. Variables and retrieved messages are
// computed once and stay before the same message, so that all calls of an agent's loop
// begin with the same bytes. What a tool sets in between is sent in the next turn.
type turnContext struct {
	source    *source
	session   memory.ContextSession
	begun     bool
	ahead     bool                               // in the background, after a turn
	variables map[memory.Scope][]memory.Variable // of each scope with a block, the one that was set last at the end
	summary   summaryState
	facts     factState
	choice    factChoice
	log       logState
	question  string // the id of the user message that retrieved are for
	retrieved []contextUnit
	sent      []blockContent // the parts of the last call, as they were cut; nil before the first one
	text      string         // of the last call: the text before the message placed
	head      headState      // of the last call
	placed    string         // the id of the message that the context of the turn precedes; empty before the first call
	problems  map[store.BlockKind]string
}

func (c *source) Begin(s memory.ContextSession) memory.TurnContext {
	return &turnContext{source: c, session: s, problems: map[store.BlockKind]string{}}
}

// Refresh adds messages that the next call no longer sends to the summary, the facts, the observations and
// the vectors, and finds the messages that are similar to the newest one.
func (t *turnContext) Refresh() error {
	if !t.begun {
		if err := t.readVariables(); err != nil {
			return err
		}
		t.begun = true
	}
	for _, b := range []struct {
		block  *Block
		update func() (string, error)
	}{{t.source.summary, t.updateSummary}, {t.source.facts, t.updateFacts}, {t.source.observations, t.updateObservations}} {
		if b.block == nil || t.problems[b.block.Kind] != "" { // after a failure only the next turn tries again
			continue
		}
		problem, err := b.update()
		if err != nil {
			return err
		}
		t.problems[b.block.Kind] = problem
	}
	question := t.session.NewestUser()
	if t.source.retrieval == nil || question == nil || t.question != "" {
		return nil
	}
	found, problem, err := t.retrieve(question.Text())
	if err != nil {
		return err
	}
	t.question, t.retrieved, t.problems[Retrieval] = question.ID, found, problem
	return nil
}

// readVariables reads the variables of the blocks, without those that models do not get.
func (t *turnContext) readVariables() error {
	t.variables = map[memory.Scope][]memory.Variable{}
	for i := range t.source.blocks {
		if b := &t.source.blocks[i]; b.Kind == Variables {
			all, err := t.session.Variables(b.Scope)
			if err != nil {
				return err
			}
			t.variables[b.Scope] = slices.DeleteFunc(slices.Clone(all), func(v memory.Variable) bool { return strings.HasPrefix(v.Name, spec.HandoffVariables) })
		}
	}
	return nil
}

// evictedMessages is a batch of messages that left the window.
type evictedMessages struct {
	session  string // that of the messages if several sessions share the block; empty for the turn's own
	version  int64  // of that session
	messages []chat.Message
	seqs     []int64 // their positions
	turns    []int64
	times    []time.Time
	tokens   int
	from, to int64       // the positions that the batch covers
	more     bool        // more messages follow
	edited   bool        // they are the new texts of messages that were processed before
	state    store.State // of the session of the turn when they were read
}

// changed reports whether messages of the session were rewound, deleted, edited or replaced since the batch was read.
func (p *evictedMessages) changed(h memory.Head) bool {
	return p.from < h.State.FirstPosition() || p.state.Rewound != h.State.Rewound || p.state.Edited != h.State.Edited
}

// pending reads the messages after a position that are not sent any more,
// oldest first, within a number of tokens, but at least one. It skips system
// messages, failed turns, and messages of a window that was replaced.
func (t *turnContext) pending(after int64, maxTokens int) (evictedMessages, error) {
	state := t.session.Head().State
	from := max(after+1, state.FirstPosition())
	b, err := readBatch(t.session.Evicted(from), from, maxTokens)
	b.state = state
	return b, err
}

// problemText returns a problem in one line, and warns of it.
func (t *turnContext) problemText(kind store.BlockKind, problem string) string {
	t.source.warn(fmt.Sprintf("memory %s, %s: %s; a later turn will retry", t.session.Key().Memory, kind, problem))
	return problem
}

// warnOnce returns warn without messages that it received before; nil does nothing.
func warnOnce(warn func(string)) func(string) {
	if warn == nil {
		return func(string) {}
	}
	const maxRemembered = 256
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(text string) {
		mu.Lock()
		known := seen[text]
		if len(seen) >= maxRemembered {
			clear(seen)
		}
		seen[text] = true
		mu.Unlock()
		if !known {
			warn(text)
		}
	}
}

// lines returns the lines of a text that are not blank, without white space at their ends.
func lines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// variableUnits returns a line for each variable, by name. The variable that was
// set first is cut first.
func variableUnits(all []memory.Variable) []contextUnit {
	units := make([]contextUnit, 0, len(all))
	for i, v := range all {
		units = append(units, contextUnit{text: "- " + v.Name + ": " + singleLine(v.Value), rank: len(all) - i})
	}
	slices.SortStableFunc(units, func(a, b contextUnit) int { return strings.Compare(a.text, b.text) })
	return units
}

// singleLine returns a text of one line as it is, any other value as JSON.
func singleLine(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
		return text
	}
	return string(value)
}
