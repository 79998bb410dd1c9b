package runview_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/runview"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
)

func TestView(t *testing.T) {
	began := time.Date(2026, 11, 24, 3, 0, 0, 0, time.Local)
	run := durable.Run{ID: "qtype-shop", Engine: durable.Temporal, Status: durable.WaitingStatus, Started: began, Rows: 1200, Failed: 1, Flow: "triage",
		Waiting: []durable.Request{{Number: 2, Kind: durable.ClientTool, Row: 7, Session: "c-7", Step: "ask", Tool: "locate", Arguments: []byte(`{"id":1}`)}}}
	var out, errs strings.Builder
	v := &runview.View{Out: &out, Err: &errs}
	testkit.Must(t, v.List([]durable.Run{run, {ID: "out.csv", Engine: durable.Local, Status: "interrupted"}}))
	testkit.Must(t, v.Show(&run))
	want := `run         engine    status       started              rows   failed  flow
qtype-shop  temporal  waiting      2026-11-24 03:00:00  1,200  1       triage
out.csv     local     interrupted
qtype-shop waiting 2026-11-24 03:00:00 1,200 rows, 1 failed
  2: row 7, session c-7: step ask needs the result of locate {"id":1}
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	if want := "to answer: qtype runs answer qtype-shop 2=yes, or =no, or =REASON; for a client tool =RESULT\n"; errs.String() != want {
		t.Errorf("got %q", errs.String())
	}
}

// TestAnswer checks the answers that are rejected before a server is called.
func TestAnswer(t *testing.T) {
	run := &durable.Run{ID: "r", Engine: durable.Temporal, Waiting: []durable.Request{{Number: 1, Kind: durable.Approval}}}
	var usage *terminal.UsageError
	if err := new(runview.View).Answer(t.Context(), durable.Config{}, run, []string{"yes"}); !errors.As(err, &usage) {
		t.Errorf("without a number: %v", err)
	}
	if err := new(runview.View).Answer(t.Context(), durable.Config{}, run, []string{"2=yes"}); err == nil || !strings.Contains(err.Error(), "does not wait for an answer to request 2") {
		t.Errorf("another number: %v", err)
	}
	if err := new(runview.View).Answer(t.Context(), durable.Config{}, &durable.Run{ID: "out", Engine: durable.Local}, []string{"1=yes"}); err == nil || !strings.Contains(err.Error(), "--suspend") {
		t.Errorf("a local run: %v", err)
	}
}

// TestSource_List checks that only a server that the user has named must answer.
func TestSource_List(t *testing.T) {
	refused := errors.New("refused")
	s := &runview.Source{Engine: durable.Temporal, Named: true, Config: func() (durable.Config, error) { return durable.Config{}, refused }}
	if _, err := s.List(t.Context(), nil, durable.Filter{}, nil); !errors.Is(err, refused) {
		t.Errorf("a server that is named: %v", err)
	}
	s = &runview.Source{Engine: durable.Local, Config: func() (durable.Config, error) { return durable.Config{}, refused }}
	if all, err := s.List(t.Context(), []string{t.TempDir()}, durable.Filter{}, nil); err != nil || len(all) > 0 {
		t.Errorf("local runs: %v, %v", all, err)
	}
}
