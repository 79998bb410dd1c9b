package promptcontext

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/vectors"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

const (
	embedBatchMessages = 256     // messages that one turn waits to have embedded; the rest follows in the next turn
	embedBatchTokens   = 200_000 // their tokens
	maxEmbedAttempts   = 4       // after conflicts with other processes
	pieceBytes         = 2_000   // of a message's text that get a vector
	maxPieces          = 16      // of one message; the text after them is not searched
)

// retrieve finds the evicted messages that are most similar to the newest user
// message. If the model fails, the turn continues without them: problem is the reason.
func (t *turnContext) retrieve(question string) (found []contextUnit, problem string, err error) {
	stored, problem, err := t.embedPending()
	if err != nil || stored == nil || stored.vectors.Len() == 0 || strings.TrimSpace(question) == "" {
		return nil, problem, err
	}
	s, block := t.session, t.source.retrieval
	embedded, err := block.Embedder.Embed(s.Context(), pieces(question)[:1])
	switch {
	case s.Context().Err() != nil:
		return nil, "", context.Cause(s.Context())
	case err != nil || len(embedded) != 1:
		return nil, t.embedderProblem(err), nil
	}
	state := s.Head().State
	first, floor, rewound, edits := s.FirstSent(), state.FirstPosition(), state.WasRewound(), state.Edits()
	matches := stored.vectors.Nearest(embedded[0], block.TopK, func(seq int64) bool {
		place := edits.Original(seq)
		return place >= floor && place < first && !rewound(seq)
	})
	for rank, match := range matches {
		for e, err := range s.Store().Entries(s.Context(), s.Key(), memory.Query{From: match.ID, To: match.ID, Live: true}) {
			if err != nil {
				return nil, "", err
			}
			found = append(found, contextUnit{text: quote(e), rank: rank, seq: edits.Original(e.Seq)})
		}
	}
	slices.SortFunc(found, func(a, b contextUnit) int { return cmp.Compare(a.seq, b.seq) })
	return found, problem, nil
}

// quote returns a message with its role and turn; all lines but the first are indented.
func quote(e *memory.Entry) string {
	return fmt.Sprintf("- %s, turn %d: %s", e.Message.Role, e.Turn, strings.Join(lines(e.Message.Text()), "\n  "))
}

func (t *turnContext) embedderProblem(err error) string {
	if err == nil {
		err = errors.New("it returned another number of vectors than texts")
	}
	return t.problemText(Retrieval, "the embedding model failed: "+textfmt.OneLine(strings.ToValidUTF8(err.Error(), "\uFFFD")))
}

// embedPending computes vectors of the messages that left the window since the
// last time, and returns all vectors of the session; nil if they are unavailable.
func (t *turnContext) embedPending() (*sessionVectors, string, error) {
	for attempt := 0; ; attempt++ {
		stored, err := t.loadVectors()
		var failed *embedderError
		if errors.As(err, &failed) {
			return nil, t.embedderProblem(failed.error), nil
		}
		if err != nil {
			return nil, "", err
		}
		p, err := t.edited(stored.meta)
		if err == nil && len(p.messages) == 0 {
			p, err = t.pending(stored.meta.To, embedBatchTokens)
		}
		if err != nil || p.to < p.from {
			return stored, "", err
		}
		batch, problem, err := t.embed(p)
		if err != nil || problem != "" {
			return stored, problem, err
		}
		err = t.addVectors(stored, batch)
		switch {
		case err == nil:
			if p.edited && attempt == 0 {
				continue // the messages that left the window since
			}
			if (p.more || batch.more) && attempt == 0 {
				problem = "more messages will be embedded in the next turn"
			}
			stored, err := t.loadVectors()
			return stored, problem, err
		case !errors.Is(err, memory.ErrConflict) || attempt == maxEmbedAttempts:
			return nil, "", err
		}
	}
}

// edited returns the texts of edited messages that have vectors of the text before.
func (t *turnContext) edited(meta vectorMeta) (evictedMessages, error) {
	p := evictedMessages{from: 1, to: meta.To, edited: true}
	s := t.session
	for message, text := range s.Head().State.Edits().All {
		if message > meta.To || text <= meta.Edited {
			continue
		}
		for e, err := range s.Store().Entries(s.Context(), s.Key(), memory.Query{From: text, To: text, Live: true}) {
			if err != nil {
				return p, err
			}
			p.messages, p.seqs = append(p.messages, e.Message), append(p.seqs, e.Seq)
		}
	}
	return p, nil
}

// vectorBatch is what is added to the stored vectors in one change.
type vectorBatch struct {
	vectors vectors.Vectors
	to      int64 // position of the newest message that it covers
	edited  int64 // position of the newest text of an edited message in it
	more    bool  // there were more messages than one turn waits for
}

// embed computes vectors of the messages of users and assistants. Tool calls and
// their results say little on their own and are not retrieved.
func (t *turnContext) embed(p evictedMessages) (vectorBatch, string, error) {
	b := vectorBatch{to: p.to}
	var texts []string
	var of []int64
	edits := t.session.Head().State.Edits()
	for i := range p.messages {
		if i == embedBatchMessages {
			b.more = true
			if !p.edited {
				b.to = p.seqs[i] - 1
			}
			break
		}
		id := edits.Current(p.seqs[i])
		if p.edited || id != p.seqs[i] {
			b.edited = max(b.edited, id)
		}
		msg := &p.messages[i]
		if msg.Role == chat.Tool || msg.Role == chat.Function || len(msg.ToolCalls) > 0 {
			continue
		}
		for _, piece := range pieces(msg.Text()) {
			texts, of = append(texts, piece), append(of, id)
		}
	}
	if len(texts) == 0 {
		return b, "", nil
	}
	ctx := t.session.Context()
	embedded, err := t.source.retrieval.Embedder.Embed(ctx, texts)
	switch {
	case ctx.Err() != nil:
		return b, "", context.Cause(ctx)
	case err != nil || len(embedded) != len(texts):
		return b, t.embedderProblem(err), nil
	}
	for i, v := range embedded {
		if err := b.vectors.Add(of[i], v); err != nil {
			return b, t.embedderProblem(fmt.Errorf("it returned %w", err)), nil
		}
	}
	return b, "", nil
}

// pieces returns the parts of a text that get vectors, cut at white space; none
// for a blank text.
func pieces(text string) []string {
	text = strings.TrimSpace(text)
	var out []string
	for text != "" && len(out) < maxPieces {
		end := len(text)
		if end > pieceBytes {
			end = pieceBytes
			for !utf8.RuneStart(text[end]) {
				end--
			}
			if blank := strings.LastIndexAny(text[:end], " \n\t"); blank > pieceBytes/2 {
				end = blank
			}
		}
		out = append(out, strings.TrimSpace(text[:end]))
		text = strings.TrimSpace(text[end:])
	}
	return out
}
