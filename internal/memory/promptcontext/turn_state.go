package promptcontext

import (
	"encoding/json"
	"time"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// turnState is what a turn reads once, as JSON: a turn that is repeated after an interruption
// sends the same, although variables have been set and messages stored since.
type turnState struct {
	Variables map[memory.Scope][]memory.Variable `json:"variables,omitempty"`
	Retrieved []retrievedUnit                    `json:"retrieved,omitempty"`
	Problems  map[store.BlockKind]string         `json:"problems,omitempty"`
}

// retrievedUnit is a retrieved passage.
type retrievedUnit struct {
	Text    string    `json:"text"`
	Rank    int       `json:"rank"`
	Seq     int64     `json:"seq,omitempty"`
	Part    int       `json:"part,omitempty"`
	Session string    `json:"session,omitempty"`
	Time    time.Time `json:"time,omitzero"`
}

// State returns what Restore needs. It is called after Refresh.
func (t *turnContext) State() ([]byte, error) {
	s := turnState{Variables: t.variables, Problems: map[store.BlockKind]string{}}
	if problem := t.problems[Retrieval]; problem != "" {
		s.Problems[Retrieval] = problem
	}
	for _, u := range t.retrieved {
		s.Retrieved = append(s.Retrieved, retrievedUnit{u.text, u.rank, u.seq, u.part, u.session, u.time})
	}
	return json.Marshal(s)
}

// Restore makes the turn send what another one has read.
func (t *turnContext) Restore(state []byte) error {
	var s turnState
	if err := json.Unmarshal(state, &s); err != nil {
		return err
	}
	t.begun, t.variables, t.retrieved = true, s.Variables, nil
	for _, u := range s.Retrieved {
		t.retrieved = append(t.retrieved, contextUnit{text: u.Text, rank: u.Rank, seq: u.Seq, part: u.Part, session: u.Session, time: u.Time})
	}
	if problem := s.Problems[Retrieval]; problem != "" {
		t.problems[Retrieval] = problem
	}
	if q := t.session.NewestUser(); q != nil {
		t.question = q.ID
	}
	return nil
}

// Kept returns the message that the context of the last call precedes, and the text.
func (t *turnContext) Kept() (id, text string) { return t.placed, t.text }
