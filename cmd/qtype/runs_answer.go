package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

func newRunsAnswer(s *streams) *cobra.Command {
	r := &runsCommand{streams: s}
	c := &cobra.Command{
		Use: "answer ID N=ANSWER…", Short: "Answer approvals and client tools that rows of a run wait for",
		Example: `  qtype runs show qtype-shop-triage-5d41402abc4b2a76b971
  qtype runs answer qtype-shop-triage-5d41402abc4b2a76b971 1=yes 2='the amount is too high'
  qtype runs answer qtype-shop-triage-5d41402abc4b2a76b971 3='{"city": "Graz"}'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("expected the id of a run and answers: qtype runs answer ID N=ANSWER…")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return r.answer(c.Context(), args[0], args[1:]) },
	}
	r.addTo(c)
	return c
}

// answer answers requests of a run.
func (r *runsCommand) answer(ctx context.Context, id string, given []string) error {
	run, cfg, err := r.find(ctx, id)
	if err != nil {
		return err
	}
	if run.Engine == durable.Local {
		return fmt.Errorf("%s is a local run: repeat its command with --suspend and --answer", id)
	}
	if run.Reason != "" {
		return fmt.Errorf("%s is %s: %s", id, run.Status, run.Reason)
	}
	answers := make([]durable.Answer, len(given))
	for i, text := range given {
		if answers[i], err = parseAnswer(run, text); err != nil {
			return err
		}
	}
	if err := durable.AnswerRequests(ctx, cfg, id, answers); err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.Err, "answered %s\n", textfmt.Count(int64(len(answers)), "request"))
	return err
}

// parseAnswer reads N=ANSWER as the request with this number needs it.
func parseAnswer(run *durable.Run, text string) (a durable.Answer, err error) {
	number, answer, ok := strings.Cut(text, "=")
	if a.Number, err = strconv.Atoi(number); !ok || err != nil {
		return a, usagef("the answer cannot be %q: expected N=yes, N=no, N=REASON or N=RESULT", text)
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

// writeRequests writes what a run waits for.
func (r *runsCommand) writeRequests(run *durable.Run) error {
	for i := range run.Waiting {
		req := &run.Waiting[i]
		wants := "wants to call"
		if req.Kind == durable.ClientTool {
			wants = "needs the result of"
		}
		line := fmt.Sprintf("%d: row %d, session %s: step %s %s %s %s", req.Number, req.Row, req.Session, req.Step, wants, req.Tool, req.Arguments)
		if _, err := fmt.Fprintln(r.Out, "  "+terminal.Clean(line)); err != nil {
			return err
		}
	}
	if len(run.Waiting) == 0 {
		return nil
	}
	if run.Engine == durable.Local {
		_, err := fmt.Fprintf(r.Err, "to answer, repeat its command with --suspend %s --answer %d=yes, or =no, or =REASON\n", terminal.Clean(run.ID), run.Waiting[0].Number)
		return err
	}
	_, err := fmt.Fprintf(r.Err, "to answer: qtype runs answer %s %d=yes, or =no, or =REASON; for a client tool =RESULT\n", terminal.Clean(run.ID), run.Waiting[0].Number)
	return err
}
