package command

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/apptest/conversation"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
)

// evalFromCommand is one call of qtype eval from.
type evalFromCommand struct {
	*cli.Streams
	memoryview.Selection
	store  appflags.Store
	flow   string
	input  string
	since  time.Duration
	limit  int
	rated  string // up, down or any; empty for all conversations
	output string
}

func newEvalFrom(s *cli.Streams) *cobra.Command {
	e := &evalFromCommand{Streams: s}
	c := &cobra.Command{
		Use:   "from APP",
		Short: "Make a data set of stored conversations",
		Long: `Writes a row for each turn of stored conversations: the session, the turn, the question,
and in the column expected what the model answered. Of conversations with equal questions
only the first is written. Secrets are written as ***. The feedback of users is in the columns
feedback and comment; an answer that was rated down is in rejected in place of expected.`,
		Example: `  qtype eval from app.qtype.yaml -i '{"customer": "c-014"}' -o rows2.jsonl
  qtype eval from app.qtype.yaml -i '{"customer": "c-014"}' --since 24h --limit 100`,
		Args: cli.Arguments("a document: qtype eval from APP"), ValidArgsFunction: cli.YAMLFiles,
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains([]string{"", "up", "down", "any"}, e.rated) {
				return terminal.Usagef("--feedback is up, down or any, not %q", e.rated)
			}
			if e.limit < 0 || e.since < 0 {
				return terminal.Usagef("--limit and --since must be positive")
			}
			return e.make(c.Context(), args[0])
		},
	}
	f := c.Flags()
	f.StringVarP(&e.Memory, "memory", "m", "", "`ID` of the memory (default: the only one)")
	f.StringVar(&e.User, "user", "", "only the sessions of this `USER`")
	f.DurationVar(&e.since, "since", 0, "only sessions that were used in the last `TIME`, such as 24h")
	f.StringVar(&e.rated, "feedback", "", "only conversations with this `FEEDBACK` of a user, up to the last turn that has it: up, down or any")
	f.IntVar(&e.limit, "limit", 0, "the most `SESSIONS` (default: all)")
	f.StringVarP(&e.flow, "flow", "f", "", "`ID` of the flow (default: the first one that uses the memory)")
	f.StringVarP(&e.input, "input", "i", "", "other inputs of the flow, for all rows: a `JSON` object")
	f.StringVarP(&e.output, "output", "o", "", "write the rows to `FILE` as JSON lines (default: standard output)")
	e.store.AddTo(f)
	return c
}

// make makes the data set.
func (e *evalFromCommand) make(ctx context.Context, path string) (err error) {
	if _, err := os.Lstat(e.output); e.output != "" && err == nil {
		return terminal.Usagef("-o: %s exists: use another name", e.output)
	}
	app, err := openStored(ctx, e.Streams, path, &e.store)
	if err != nil {
		return err
	}
	defer appflags.CloseApp(ctx, app, &err)
	var rows bytes.Buffer
	d := &conversation.DataSet{Out: &rows}
	if err := e.collect(ctx, app, d); err != nil {
		return err
	}
	if e.output == "" {
		_, err = e.Out.Write(rows.Bytes())
	} else if err = os.WriteFile(e.output, rows.Bytes(), 0o600); err != nil {
		err = fmt.Errorf("%s: cannot be written: %w", e.output, terminal.Cause(err))
	}
	fmt.Fprintf(e.Err, "%s of %s", textfmt.Count(int64(d.Rows), "row"), textfmt.Count(int64(d.Sessions), "session"))
	if d.Repeated > 0 {
		fmt.Fprintf(e.Err, ", without %d with the same questions", d.Repeated)
	}
	fmt.Fprintln(e.Err)
	return err
}

// wanted returns the rows of a conversation up to the last one with the feedback that is wanted.
func (e *evalFromCommand) wanted(rows []*conversation.Row) []*conversation.Row {
	for i, r := range slices.Backward(rows) {
		if e.rated == "" || r.Feedback != nil && (e.rated == "any" || e.rated == string(r.Feedback.Verdict)) {
			return rows[:i+1]
		}
	}
	return nil
}

// collect adds the rows of the sessions.
func (e *evalFromCommand) collect(ctx context.Context, app *runtime.App, d *conversation.DataSet) error {
	m, err := e.Open(app)
	if err != nil {
		return err
	}
	source, err := sourceOf(app.Spec(), m.ID, e.flow, e.input)
	if err != nil {
		return err
	}
	filter := memory.SessionFilter{}
	if e.User != "" {
		filter.Prefix = memory.UserPrefix(e.User)
	}
	if e.since > 0 {
		filter.UsedAfter = time.Now().Add(-e.since)
	}
	typed := &conversation.Typed{}
	redact := func(text string) string { return typed.Redact(app.Redactor().String(text)) }
	for s, err := range m.EachSession(ctx, filter) {
		if err != nil {
			return err
		}
		if s.Messages == 0 {
			continue // it has shared values only
		}
		given, err := appstate.ReadFeedback(ctx, app.State(), m.ID, s.Session)
		if err != nil {
			return err
		}
		turns, err := conversation.Read(m.History(ctx, s.Session), 0, redact)
		if err != nil {
			fmt.Fprintf(e.Err, "warning: session %s is left out: %s\n", terminal.Clean(s.Session), err)
			continue
		}
		for _, f := range given {
			f.Explanation = redact(f.Explanation)
		}
		rows := e.wanted(source.Rows(redact(s.Session), s.LastSaid, turns, given))
		if len(rows) == 0 {
			continue
		}
		if err := d.Add(rows); err != nil {
			return err
		}
		if d.Sessions == e.limit {
			break
		}
	}
	if replaced := typed.Summary(); replaced != "" {
		fmt.Fprintf(e.Err, "replaced in the conversations: %s\n", replaced)
	}
	if d.Rows == 0 {
		return fmt.Errorf("memory %s has no such conversations in %s", m.ID, cmp.Or(m.Location, "its store"))
	}
	return nil
}
