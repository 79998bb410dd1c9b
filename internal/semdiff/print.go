package semdiff

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// Text writes changes for people, grouped by how much they matter and by what
// they concern. Color adds ANSI colours to the headings.
func Text(w io.Writer, changes []Change, color bool) error {
	var b strings.Builder
	var last Change
	for i, c := range changes {
		if i == 0 || c.Class != last.Class {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(heading(c.Class, Count(changes, c.Class), color) + "\n")
		}
		if i == 0 || c.Class != last.Class || c.Subject() != last.Subject() {
			b.WriteString("  " + c.Subject() + "\n")
		}
		c.write(&b)
		last = c
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Subject is what a change concerns: "flow talk", "step respond of flow talk".
func (c Change) Subject() string {
	s := string(c.Kind)
	if c.ID != "" {
		s += " " + plain(c.ID)
	}
	if c.Flow != "" {
		s += " of flow " + plain(c.Flow)
	}
	return s
}

// write prints a change below its subject.
func (c Change) write(b *strings.Builder) {
	fmt.Fprintf(b, "    %s  %s\n", c.Message, places(c.Old.Span, c.New.Span))
	for _, line := range c.Lines {
		fmt.Fprintf(b, "      %s\n", line)
	}
	if c.Reason != "" {
		fmt.Fprintf(b, "      %s\n", c.Reason)
	}
}

// places are where the two documents say it, in brackets.
func places(old, now source.Span) string {
	switch {
	case old.IsZero() && now.IsZero():
		return ""
	case old.IsZero():
		return "[" + plain(now.String()) + "]"
	case now.IsZero():
		return "[was " + plain(old.String()) + "]"
	}
	return "[" + plain(old.String()) + " → " + plain(now.String()) + "]"
}

func heading(class Impact, n int, color bool) string {
	title := fmt.Sprintf("%s (%d)", class, n)
	if !color {
		return title
	}
	code := map[Impact]string{Breaking: "1;31", Behaviour: "1;33"}[class]
	if code == "" {
		code = "1"
	}
	return "\x1b[" + code + "m" + title + "\x1b[0m"
}

// Summary is "2 breaking changes, 1 of behaviour, 3 harmless".
func Summary(changes []Change) string {
	var parts []string
	for _, class := range classes() {
		n := Count(changes, class)
		switch {
		case n == 0:
			continue
		case class == Behaviour:
			parts = append(parts, fmt.Sprintf("%d of behaviour", n))
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, class))
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
	Breaking  int          `json:"breaking"`  // how many changes break
	Behaviour int          `json:"behaviour"` // how many change what is answered
	Harmless  int          `json:"harmless"`  // how many do neither
	Changes   []changeJSON `json:"changes"`   // all of them, the worst first
}

// changeJSON is the JSON form of a change.
type changeJSON struct {
	Class   Impact     `json:"class"`            // breaking, behaviour or harmless
	Change  ChangeKind `json:"change"`           // added, removed, renamed, moved or changed
	Kind    spec.Kind  `json:"kind"`             // flow, memory, …
	ID      string     `json:"id"`               // the thing's id
	Flow    string     `json:"flow,omitempty"`   // the flow of a step or variable
	Field   string     `json:"field,omitempty"`  // the dotted key
	Message string     `json:"message"`          // the change on one line
	Reason  string     `json:"reason,omitempty"` // why it is of this class
	Old     *sideJSON  `json:"old,omitempty"`    // what the old document says
	New     *sideJSON  `json:"new,omitempty"`    // what the new document says
}

// sideJSON is the JSON form of one side of a change.
type sideJSON struct {
	File   string `json:"file"`            // the file's path
	Line   int    `json:"line"`            // from 1
	Column int    `json:"column"`          // from 1, in characters
	Value  string `json:"value,omitempty"` // what is said; *** for a secret
}

// JSON writes one object with the two paths, the numbers and the changes.
func JSON(w io.Writer, old, now string, changes []Change) error {
	r := report{Old: old, New: now, Breaking: Count(changes, Breaking), Behaviour: Count(changes, Behaviour),
		Harmless: Count(changes, Harmless), Changes: []changeJSON{}}
	for _, c := range changes {
		r.Changes = append(r.Changes, changeJSON{Class: c.Class, Change: c.What, Kind: c.Kind, ID: c.ID, Flow: c.Flow, Field: c.Field,
			Message: c.Message, Reason: c.Reason, Old: c.Old.json(), New: c.New.json()})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (s Version) json() *sideJSON {
	if s.Span.IsZero() {
		return nil
	}
	return &sideJSON{s.Span.File.Path, s.Span.Start.Line, s.Span.Start.Column, s.Value}
}
