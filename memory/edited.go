package memory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// edit is one edit of a message: the message at of has the text of the one at by.
type edit struct{ of, by int64 }

// Edits are the messages of a session that were edited. The new text of a message is
// an entry at the end of the history; in the conversation it has the place of the message.
type Edits []edit

// Edits returns the messages that were edited, without edits that were rewound.
func (s State) Edits() Edits {
	edits, _ := parseEdits(s.Edited) // checked when the session was read
	return edits
}

// Current returns the position of the newest text of the message at a position: the
// position itself for a message that was not edited.
func (e Edits) Current(position int64) int64 {
	for _, one := range slices.Backward(e) {
		if one.of == position {
			return one.by
		}
	}
	return position
}

// Original returns the position of the message whose text is at a position: the
// position itself if it is not the text of an edit.
func (e Edits) Original(position int64) int64 {
	for _, one := range e {
		if one.by == position {
			return one.of
		}
	}
	return position
}

// All yields the positions of the messages with those of their newest texts, by the
// positions of the texts.
func (e Edits) All(yield func(message, text int64) bool) {
	for _, one := range e {
		if e.Current(one.of) == one.by && !yield(one.of, one.by) {
			return
		}
	}
}

// texts returns the positions of the texts, which have no other place.
func (e Edits) texts() []seqRange {
	all := make([]seqRange, len(e))
	for i, one := range e {
		all[i] = seqRange{one.by, one.by}
	}
	return all
}

// String returns the form of State.Edited, such as "5>12,7>13".
func (e Edits) String() string {
	parts := make([]string, len(e))
	for i, one := range e {
		parts[i] = fmt.Sprintf("%d>%d", one.of, one.by)
	}
	return strings.Join(parts, ",")
}

// parseEdits is the inverse of String.
func parseEdits(text string) (Edits, error) {
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
		out = append(out, edit{from, to})
	}
	return out, nil
}

// IsPinned reports whether the message at a position is pinned.
func (s State) IsPinned(position int64) bool {
	if s.Pinned == "" {
		return false
	}
	pins, _ := parseSeqRanges(s.Pinned) // written by this package
	return pins.has(position)
}

// withText returns an entry with the text of another one, nil for its own. It keeps its
// id, its place and its time.
func withText(e, text *Entry) *Entry {
	if text == nil {
		return e
	}
	c := *text
	c.Message.ID, c.Seq, c.Turn, c.Time, c.Status = e.Message.ID, e.Seq, e.Turn, e.Time, e.Status
	return &c
}

// ranges returns the parsed positions of Evicted and Rewound.
func (s State) ranges() (evicted, rewound seqRanges, err error) {
	if evicted, err = parseSeqRanges(s.Evicted); err == nil {
		rewound, err = parseSeqRanges(s.Rewound)
	}
	return evicted, rewound, err
}

// WasOmitted returns a function that reports whether the message at a position is one of
// Omitted.
func (c *Call) WasOmitted() func(seq int64) bool {
	omitted, _ := parseSeqRanges(c.Omitted) // written by this package
	return omitted.has
}

// WasShortened returns a function that reports whether the message at a position is one of
// Shortened.
func (c *Call) WasShortened() func(seq int64) bool {
	shortened, _ := parseSeqRanges(c.Shortened) // written by this package
	return shortened.has
}

// statuses derives the statuses of the entries of a session from its state.
type statuses struct {
	state                    State
	evicted, hidden, deleted seqRanges
	edits                    Edits
}

func (s State) statuses() (*statuses, error) {
	out := &statuses{state: s}
	var err error
	if out.evicted, out.hidden, err = s.ranges(); err == nil {
		out.edits, err = parseEdits(s.Edited)
	}
	if err == nil {
		out.deleted, err = parseSeqRanges(s.Deleted)
	}
	return out, err
}

// of returns the status of an entry. The newest text of an edited message has that of
// its place.
func (s *statuses) of(e *Entry) Status {
	place := s.edits.Original(e.Seq)
	if s.edits.Current(place) != e.Seq {
		return Edited
	}
	return s.at(place, e)
}

// at returns the status of an entry that has a place in the conversation.
func (s *statuses) at(place int64, e *Entry) Status {
	switch {
	case e.Status == Failed:
		return Failed
	case s.deleted.has(place):
		return Deleted
	case s.hidden.has(place):
		return Rewound
	case isSystem(e) && place != s.state.System:
		return Replaced
	case !isSystem(e) && (place < s.state.First || s.evicted.has(place)):
		return Flushed
	}
	return InWindow
}
