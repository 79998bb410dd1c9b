package semdiff

import (
	"fmt"
	"io"
	"strings"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// Text writes changes as text, grouped by impact and entity. color adds ANSI
// colours to the headings.
func Text(w io.Writer, changes []Change, color bool) error {
	var b strings.Builder
	var last Change
	for i, c := range changes {
		if i == 0 || c.Impact != last.Impact {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(heading(c.Impact, Count(changes, c.Impact), color) + "\n")
		}
		if i == 0 || c.Impact != last.Impact || c.Subject() != last.Subject() {
			b.WriteString("  " + c.Subject() + "\n")
		}
		c.write(&b)
		last = c
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Subject returns the changed entity: "flow talk", "step respond of flow talk".
func (c Change) Subject() string {
	s := string(c.Kind)
	if c.ID != "" {
		s += " " + printable(c.ID)
	}
	if c.Flow != "" {
		s += " of flow " + printable(c.Flow)
	}
	return s
}

// write prints a change below its subject.
func (c Change) write(b *strings.Builder) {
	fmt.Fprintf(b, "    %s  %s\n", c.Message, locations(c.Old.Span, c.New.Span))
	for _, line := range c.Lines {
		fmt.Fprintf(b, "      %s\n", line)
	}
	if c.Reason != "" {
		fmt.Fprintf(b, "      %s\n", c.Reason)
	}
}

// locations returns the positions in the two documents, in brackets.
func locations(old, now source.Span) string {
	switch {
	case old.IsZero() && now.IsZero():
		return ""
	case old.IsZero():
		return "[" + printable(now.String()) + "]"
	case now.IsZero():
		return "[was " + printable(old.String()) + "]"
	}
	return "[" + printable(old.String()) + " → " + printable(now.String()) + "]"
}

func heading(impact Impact, n int, color bool) string {
	title := fmt.Sprintf("%s (%d)", impact, n)
	if !color {
		return title
	}
	code := map[Impact]string{Breaking: "1;31", Behaviour: "1;33"}[impact]
	if code == "" {
		code = "1"
	}
	return "\x1b[" + code + "m" + title + "\x1b[0m"
}

// Summary returns a text such as "6 changes: 2 breaking, 1 of behaviour, 3
// harmless".
func Summary(changes []Change) string {
	var parts []string
	for _, impact := range impacts() {
		n := Count(changes, impact)
		switch {
		case n == 0:
			continue
		case impact == Behaviour:
			parts = append(parts, fmt.Sprintf("%d of behaviour", n))
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, impact))
		}
	}
	if len(parts) == 0 {
		return "no difference in meaning"
	}
	noun := "changes: "
	if len(changes) == 1 {
		noun = "change: "
	}
	return fmt.Sprint(len(changes), " ", noun, strings.Join(parts, ", "))
}

// report is the JSON form of a comparison.
type report struct {
	Old       string       `json:"old"`       // the path of the old document
	New       string       `json:"new"`       // the path of the new document
	Breaking  int          `json:"breaking"`  // how many changes break callers or stored data
	Behaviour int          `json:"behaviour"` // how many changes affect the answers
	Harmless  int          `json:"harmless"`  // how many changes do neither
	Changes   []changeJSON `json:"changes"`   // worst first
}

// changeJSON is the JSON form of a change.
type changeJSON struct {
	Class   Impact       `json:"class"`
	Change  ChangeKind   `json:"change"`
	Kind    spec.Kind    `json:"kind"`             // of the entity
	ID      string       `json:"id"`               // of the entity
	Flow    string       `json:"flow,omitempty"`   // the flow of a step or variable
	Field   string       `json:"field,omitempty"`  // the key, with dots
	Message string       `json:"message"`          // the change in one line
	Reason  string       `json:"reason,omitempty"` // of the impact
	Old     *versionJSON `json:"old,omitempty"`    // in the old document
	New     *versionJSON `json:"new,omitempty"`    // in the new document
}

// versionJSON is the JSON form of a Version.
type versionJSON struct {
	File   string `json:"file"`
	Line   int    `json:"line"`            // 1-based
	Column int    `json:"column"`          // 1-based, in characters
	Value  string `json:"value,omitempty"` // *** for a secret
}

// JSON writes the paths, the numbers and the changes as one object.
func JSON(w io.Writer, old, now string, changes []Change) error {
	r := report{Old: old, New: now, Breaking: Count(changes, Breaking), Behaviour: Count(changes, Behaviour),
		Harmless: Count(changes, Harmless), Changes: []changeJSON{}}
	for _, c := range changes {
		r.Changes = append(r.Changes, changeJSON{Class: c.Impact, Change: c.Action, Kind: c.Kind, ID: c.ID, Flow: c.Flow, Field: c.Field,
			Message: c.Message, Reason: c.Reason, Old: c.Old.json(), New: c.New.json()})
	}
	return textfmt.WriteJSON(w, r)
}

func (s Version) json() *versionJSON {
	if s.Span.IsZero() {
		return nil
	}
	return &versionJSON{s.Span.File.Path, s.Span.Start.Line, s.Span.Start.Column, s.Value}
}
