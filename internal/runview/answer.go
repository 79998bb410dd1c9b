package runview

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// Answer answers requests of a run and writes how many. The answers are N=ANSWER, with the numbers of the requests.
func (v *View) Answer(ctx context.Context, cfg durable.Config, run *durable.Run, given []string) error {
	switch {
	case run.Engine == durable.Local:
		return fmt.Errorf("%s is a local run: repeat its command with --suspend and --answer", run.ID)
	case run.Reason != "":
		return fmt.Errorf("%s is %s: %s", run.ID, run.Status, run.Reason)
	}
	answers := make([]durable.Answer, len(given))
	for i, text := range given {
		var err error
		if answers[i], err = parseAnswer(run, text); err != nil {
			return err
		}
	}
	engine, err := durable.From(ctx)
	if err != nil {
		return err
	}
	if err := engine.Answer(ctx, cfg, run.ID, answers); err != nil {
		return err
	}
	_, err = fmt.Fprintf(v.Err, "answered %s\n", textfmt.Count(len(answers), "request"))
	return err
}

// parseAnswer reads N=ANSWER as the request with this number needs it.
func parseAnswer(run *durable.Run, text string) (a durable.Answer, err error) {
	number, answer, ok := strings.Cut(text, "=")
	if a.Number, err = strconv.Atoi(number); !ok || err != nil {
		return a, terminal.Usagef("the answer cannot be %q: expected N=yes, N=no, N=REASON or N=RESULT", text)
	}
	at := slices.IndexFunc(run.Waiting, func(r durable.Request) bool { return r.Number == a.Number })
	if at < 0 {
		return a, fmt.Errorf("the run does not wait for an answer to request %d", a.Number)
	}
	if run.Waiting[at].Kind == durable.Approval {
		a.Approved, a.Reason = clienttool.ParseApproval(answer)
		return a, nil
	}
	a.Result = json.RawMessage(answer)
	if !json.Valid(a.Result) {
		a.Result, err = json.Marshal(answer) // a text
	}
	return a, err
}
