package conversation

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Row is a turn of a conversation in a data set.
type Row struct {
	Session string    // the stored id
	Turn    int64     // the number in the session
	Time    time.Time // when the session was last used
	Inputs  map[string]any
	Answer  string // the last text of the model in the turn
}

// MarshalJSON writes the columns: session, turn, time, the inputs of the flow, and expected.
func (r *Row) MarshalJSON() ([]byte, error) {
	columns := map[string]any{}
	for id, v := range r.Inputs {
		columns[id] = v
	}
	columns["session"], columns["turn"], columns["time"], columns["expected"] = r.Session, r.Turn, r.Time.UTC().Format(time.RFC3339), r.Answer
	return json.Marshal(columns)
}

// Rows returns the turns of a session as rows.
func (s *Source) Rows(session string, used time.Time, turns []*Turn) []*Row {
	var rows []*Row
	for _, t := range turns {
		r := &Row{Session: session, Turn: t.Number, Time: used, Inputs: map[string]any{s.input: t.Input}}
		for id, v := range s.Inputs {
			r.Inputs[id] = v
		}
		if n := len(t.Rounds); n > 0 {
			r.Answer = t.Rounds[n-1].Text
		}
		rows = append(rows, r)
	}
	return rows
}

// DataSet writes the rows of sessions as JSON lines, of equal conversations only the first one.
type DataSet struct {
	Out                      io.Writer
	Sessions, Rows, Repeated int // what was written, and sessions that were not

	seen map[string]bool
}

// Add writes the rows of a session.
func (d *DataSet) Add(rows []*Row) error {
	var questions strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&questions, "%q ", fmt.Sprint(r.Inputs))
	}
	if d.seen[questions.String()] {
		d.Repeated++
		return nil
	}
	if d.seen == nil {
		d.seen = map[string]bool{}
	}
	d.seen[questions.String()] = true
	lines := json.NewEncoder(d.Out)
	lines.SetEscapeHTML(false)
	for _, r := range rows {
		if err := lines.Encode(r); err != nil {
			return err
		}
	}
	d.Sessions, d.Rows = d.Sessions+1, d.Rows+len(rows)
	return nil
}
