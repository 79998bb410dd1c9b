package store

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/spec/chat"
)

// Edit is one edit of a message: the message at of has the text of the one at by.
type Edit struct{ Of, By int64 }

// Edits are the messages of a session that were edited. The new text of a message is
// an entry at the end of the history; in the conversation it has the place of the message.
type Edits []Edit

// Edits returns the messages that were edited, without edits that were rewound.
func (s State) Edits() Edits {
	edits, _ := ParseEdits(s.Edited) // checked when the session was read
	return edits
}

// Current returns the position of the newest text of the message at a position: the
// position itself for a message that was not edited.
func (e Edits) Current(position int64) int64 {
	for _, one := range slices.Backward(e) {
		if one.Of == position {
			return one.By
		}
	}
	return position
}

// Original returns the position of the message whose text is at a position: the
// position itself if it is not the text of an edit.
func (e Edits) Original(position int64) int64 {
	for _, one := range e {
		if one.By == position {
			return one.Of
		}
	}
	return position
}

// All yields the positions of the messages with those of their newest texts, by the
// positions of the texts.
func (e Edits) All(yield func(message, text int64) bool) {
	for _, one := range e {
		if e.Current(one.Of) == one.By && !yield(one.Of, one.By) {
			return
		}
	}
}

// Texts returns the positions of the texts, which have no other place.
func (e Edits) Texts() []Range {
	all := make([]Range, len(e))
	for i, one := range e {
		all[i] = Range{one.By, one.By}
	}
	return all
}

// String returns the form of State.Edited, such as "5>12,7>13".
func (e Edits) String() string {
	parts := make([]string, len(e))
	for i, one := range e {
		parts[i] = fmt.Sprintf("%d>%d", one.Of, one.By)
	}
	return strings.Join(parts, ",")
}

// ParseEdits is the inverse of String.
func ParseEdits(text string) (Edits, error) {
	if text == "" {
		return nil, nil
	}
	var out Edits
	for part := range strings.SplitSeq(text, ",") {
		of, by, _ := strings.Cut(part, ">")
		from, errFrom := strconv.ParseInt(of, 10, 64)
		to, errTo := strconv.ParseInt(by, 10, 64)
		if errFrom != nil || errTo != nil || from < 1 || to <= from {
			return nil, fmt.Errorf("invalid edit %q", part)
		}
		out = append(out, Edit{from, to})
	}
	return out, nil
}

// IsPinned reports whether the message at a position is pinned.
func (s State) IsPinned(position int64) bool {
	if s.Pinned == "" {
		return false
	}
	pins, _ := ParseRanges(s.Pinned) // written by this package
	return pins.Has(position)
}

// WithText returns an entry with the text of another one, nil for its own. It keeps its
// id, its place and its time.
func WithText(e, text *Entry) *Entry {
	if text == nil {
		return e
	}
	c := *text
	c.Message.ID, c.Seq, c.Turn, c.Time, c.Status = e.Message.ID, e.Seq, e.Turn, e.Time, e.Status
	return &c
}

// Ranges returns the parsed positions of Evicted and Rewound.
func (s State) Ranges() (evicted, rewound Ranges, err error) {
	if evicted, err = ParseRanges(s.Evicted); err == nil {
		rewound, err = ParseRanges(s.Rewound)
	}
	return evicted, rewound, err
}

// WasOmitted returns a function that reports whether the message at a position is one of
// Omitted.
func (c *Call) WasOmitted() func(seq int64) bool {
	omitted, _ := ParseRanges(c.Omitted) // written by this package
	return omitted.Has
}

// WasShortened returns a function that reports whether the message at a position is one of
// Shortened.
func (c *Call) WasShortened() func(seq int64) bool {
	shortened, _ := ParseRanges(c.Shortened) // written by this package
	return shortened.Has
}

// Statuses derives the statuses of the entries of a session from its state.
type Statuses struct {
	state                    State
	evicted, Hidden, deleted Ranges
	Edits                    Edits
}

// Statuses returns the statuses of the entries of a session in state s.
func (s State) Statuses() (*Statuses, error) {
	out := &Statuses{state: s}
	var err error
	if out.evicted, out.Hidden, err = s.Ranges(); err == nil {
		out.Edits, err = ParseEdits(s.Edited)
	}
	if err == nil {
		out.deleted, err = ParseRanges(s.Deleted)
	}
	return out, err
}

// Of returns the status of an entry. The newest text of an edited message has that of
// its place.
func (s *Statuses) Of(e *Entry) Status {
	place := s.Edits.Original(e.Seq)
	if s.Edits.Current(place) != e.Seq {
		return Edited
	}
	return s.At(place, e)
}

// At returns the status of an entry that has a place in the conversation.
func (s *Statuses) At(place int64, e *Entry) Status {
	system := e.Message.Role == chat.System
	switch {
	case e.Status == Failed:
		return Failed
	case s.deleted.Has(place):
		return Deleted
	case s.Hidden.Has(place):
		return Rewound
	case system && place != s.state.System:
		return Replaced
	case !system && (place < s.state.First || s.evicted.Has(place)):
		return Flushed
	}
	return InWindow
}

// WasRewound returns a function that reports whether the entry at a position is not part
// of the conversation: its message was rewound or deleted, or it has another text now.
func (s State) WasRewound() func(seq int64) bool {
	_, hidden, _ := s.Ranges() // checked when the session was read
	edits := s.Edits()
	if len(edits) == 0 {
		return hidden.Has
	}
	return func(seq int64) bool {
		place := edits.Original(seq)
		return edits.Current(place) != seq || hidden.Has(place)
	}
}

// FirstPosition returns the lowest position that a window in state s can contain.
func (s State) FirstPosition() int64 { return max(s.Floor, 1) }

// Extend notes the time of a message. It never goes back: the clock of a remote host, or
// one that was set back, must not end the session's ttl.
func (s *State) Extend(now time.Time) {
	if now.After(s.LastSaid) {
		s.LastSaid = now
	}
}
