package appstate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/memory/store"
)

// Answer is what a user says of an answer.
type Answer struct {
	Type        string   `json:"type"`                  // thumbs, rating or category
	Value       *bool    `json:"value,omitempty"`       // thumbs: up or down
	Score       *float64 `json:"score,omitempty"`       // rating: a whole number from 1 to the scale
	Categories  []string `json:"categories,omitempty"`  // category: the chosen labels
	Explanation string   `json:"explanation,omitempty"` // the reason; empty for none
}

// Verdict is whether feedback is positive.
type Verdict string

// The verdicts. Labels, and ratings in the middle of the scale, have none.
const (
	Up   Verdict = "up"
	Down Verdict = "down"
)

// Feedback is what a user says of a turn of a conversation.
type Feedback struct {
	Answer

	Verdict Verdict   `json:"verdict,omitempty"`
	Memory  string    `json:"memory"` // that has the conversation
	Turn    int64     `json:"turn"`
	Run     string    `json:"run,omitempty"` // that gave the answer; empty if it is not known
	Time    time.Time `json:"time"`
}

// Label returns the verdict, or else the score or the categories.
func (f *Feedback) Label() string {
	if f.Verdict == "" && f.Score != nil {
		return fmt.Sprint(*f.Score)
	}
	return cmp.Or(string(f.Verdict), strings.Join(f.Categories, ", "))
}

// PutFeedback stores the feedback on a turn of a conversation, in place of an earlier one.
func PutFeedback(ctx context.Context, app store.Application, conversation string, f *Feedback) error {
	raw, err := json.Marshal(f)
	if err != nil {
		return err
	}
	records := app.Records(Ratings)
	for {
		rec, err := records.Get(ctx, conversation)
		if err != nil {
			return err
		}
		err = records.Write(ctx, conversation, store.RecordChange{Version: rec.Version, Next: store.NextVersion(rec.Version), Stored: f.Time,
			Values: map[string][]byte{fmt.Sprintf("%s:%d", f.Memory, f.Turn): raw}})
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// ReadFeedback returns the feedback on the turns of a conversation in a memory, the oldest first.
func ReadFeedback(ctx context.Context, app store.Application, memory, conversation string) ([]*Feedback, error) {
	rec, err := app.Records(Ratings).Get(ctx, conversation)
	if err != nil {
		return nil, err
	}
	var all []*Feedback
	for _, raw := range rec.Values {
		f := &Feedback{}
		if err := json.Unmarshal(raw, f); err != nil {
			return nil, fmt.Errorf("the feedback on session %q is damaged: %w", conversation, err)
		}
		if f.Memory == memory {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *Feedback) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Turn, b.Turn)) })
	return all, nil
}
