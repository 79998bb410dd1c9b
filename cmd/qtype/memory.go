package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/memoryview/show"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// memoryCommand is one call of a subcommand of qtype memory.
type memoryCommand struct {
	*streams
	memory  string // the memory's id; empty where the document has only one
	session string
	all     bool
	format  *enumFlag
}

func newMemory(s *streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "memory",
		Short: "Look into stored conversations, clear them, replay transcripts",
		Args:  noCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newList(s), newShow(s), newHistory(s), newExplainTurn(s), newExport(s), newClear(s), newPrune(s), newReplay(s))
	return c
}

// command makes a subcommand that takes a document and looks at its memories.
func (r *memoryCommand) command(use, short string, run func(context.Context, *runtime.App) error) *cobra.Command {
	c := &cobra.Command{
		Use: use + " APP", Short: short,
		Args: arguments("a document: qtype memory " + use + " APP"), ValidArgsFunction: yamlFiles,
		RunE: func(c *cobra.Command, args []string) (err error) {
			app, err := r.open(c.Context(), args[0])
			if err != nil {
				return err
			}
			defer func() {
				if closing := app.Close(context.WithoutCancel(c.Context())); err == nil {
					err = closing
				}
			}()
			return run(c.Context(), app)
		},
	}
	c.Flags().StringVarP(&r.memory, "memory", "m", "", "the memory's `ID`; may be left out where there is only one")
	return c
}

// open readies an application for a look at its memories: what only a run
// needs, such as environment variables, may be missing.
func (r *memoryCommand) open(ctx context.Context, path string) (*runtime.App, error) {
	p, faults := qtype.Check(ctx, path)
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return qtype.New(p)
}

// withFormat adds --format.
func (r *memoryCommand) withFormat(c *cobra.Command) *cobra.Command {
	r.format = newChoice("text", "json")
	c.Flags().Var(r.format, "format", "how it is written: for people, or one JSON object a line")
	return c
}

// withSession adds --session.
func (r *memoryCommand) withSession(c *cobra.Command) *cobra.Command {
	c.Flags().StringVarP(&r.session, "session", "s", "", "the session's `ID`; may be left out where there is only one")
	return c
}

// declared are the memories that the call is about: the named one, or all.
func (r *memoryCommand) declared(app *spec.Application) ([]*spec.Memory, error) {
	var ids []string
	for _, m := range app.Memories {
		if m.ID == r.memory {
			return []*spec.Memory{m}, nil
		}
		ids = append(ids, m.ID)
	}
	switch {
	case r.memory != "":
		return nil, usagef("no memory has the id %q; there are: %s%s", r.memory, joinNames(ids), didYouMean(r.memory, ids))
	case len(ids) == 0:
		return nil, fmt.Errorf("application %s declares no memory", app.ID)
	}
	return app.Memories, nil
}

// one is the memory that the call is about.
func (r *memoryCommand) one(app *spec.Application) (*spec.Memory, error) {
	all, err := r.declared(app)
	if err != nil {
		return nil, err
	}
	if len(all) > 1 {
		var ids []string
		for _, m := range all {
			ids = append(ids, m.ID)
		}
		return nil, usagef("which memory? --memory is one of %s", joinNames(ids))
	}
	return all[0], nil
}

// conversation is the memory and the session that the call is about.
func (r *memoryCommand) conversation(ctx context.Context, app *runtime.App) (*memory.Memory, error) {
	declared, err := r.one(app.Spec())
	if err != nil {
		return nil, err
	}
	m := app.Memory(declared.ID)
	sessions, err := m.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, s := range sessions {
		if s.Session == r.session {
			return m, nil
		}
		ids = append(ids, s.Session)
	}
	switch {
	case len(ids) == 0:
		return nil, fmt.Errorf("memory %s has no conversations in %s yet", declared.ID, app.StoreLocation(declared.ID))
	case r.session != "":
		return nil, fmt.Errorf("memory %s has no session %q%s", declared.ID, r.session, didYouMean(r.session, ids))
	case len(ids) > 1:
		return nil, usagef("which session? --session names one; qtype memory list shows all %d", len(ids))
	}
	r.session = ids[0]
	return m, nil
}

func newList(s *streams) *cobra.Command {
	r := &memoryCommand{streams: s}
	return r.withFormat(r.command("list", "List the sessions of each memory", r.list))
}

// sessionRow is a line of qtype memory list.
type sessionRow struct {
	Memory   string    `json:"memory"`
	Session  string    `json:"session"`
	Messages int64     `json:"messages"`
	InWindow int       `json:"in_window"`
	Tokens   int       `json:"tokens"`
	Used     int       `json:"used"`
	Limit    int       `json:"limit"`
	Unit     string    `json:"unit"`
	Flushes  int       `json:"flushes"`
	LastSaid time.Time `json:"last_said"`
}

// list prints a line for each session of the memories.
func (r *memoryCommand) list(ctx context.Context, app *runtime.App) error {
	declared, err := r.declared(app.Spec())
	if err != nil {
		return err
	}
	var lines []sessionRow
	for _, m := range declared {
		sessions, err := app.Memory(m.ID).Sessions(ctx)
		if err != nil {
			return err
		}
		for _, s := range sessions {
			lines = append(lines, sessionRow{m.ID, s.Session, s.Messages, s.InWindow, s.Tokens, s.Used, s.Limit, string(s.Unit), s.Flushes, s.LastSaid})
		}
	}
	if r.format.value == "json" {
		return jsonLines(r.out, lines)
	}
	if len(lines) == 0 {
		_, err := fmt.Fprintf(r.out, "no conversations in %s yet\n", joinNames(places(app, declared)))
		return err
	}
	return r.write("", listTable(lines, time.Now()))
}

// places are where the memories live, each named once.
func places(app *runtime.App, declared []*spec.Memory) []string {
	var all []string
	for _, m := range declared {
		if place := app.StoreLocation(m.ID); !slices.Contains(all, place) {
			all = append(all, place)
		}
	}
	return all
}

// listTable draws look.md's table.
func listTable(lines []sessionRow, now time.Time) string {
	const idMost = 32 // columns of an id
	idWidth, sessionWidth := len("memory"), len("session")
	for _, l := range lines {
		idWidth = max(idWidth, min(runewidth.StringWidth(clean(l.Memory)), idMost))
		sessionWidth = max(sessionWidth, min(runewidth.StringWidth(clean(l.Session)), idMost))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s   %s  %8s  %9s  %16s   %s\n", pad("memory", idWidth), pad("session", sessionWidth), "messages", "in window", "tokens / limit", "last said")
	for _, l := range lines {
		fmt.Fprintf(&b, "%s   %s  %8s  %9s  %16s   %s\n", pad(clean(l.Memory), idWidth), pad(clean(l.Session), sessionWidth),
			show.Thousands(int(l.Messages)), show.Thousands(l.InWindow), fullness(l), ago(now.Sub(l.LastSaid)))
	}
	return b.String()
}

// fullness is how much of its limit a window takes: tokens, unless another unit is named.
func fullness(l sessionRow) string {
	switch {
	case l.Limit == 0:
		return show.Thousands(l.Tokens)
	case l.Unit == string(memory.InTokens):
		return show.Thousands(l.Used) + " / " + show.Thousands(l.Limit)
	}
	return fmt.Sprintf("%s / %s %s", show.Thousands(l.Used), show.Thousands(l.Limit), l.Unit)
}

// ago is a length of time as a person says it.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return count(int(d.Hours()/24), "day") + " ago"
}

func newShow(s *streams) *cobra.Command {
	r := &memoryCommand{streams: s}
	return r.withFormat(r.withSession(r.command("show", "Show what the next call of the model is sent of a session", r.show)))
}

// show prints a session's window and what is sent beside it; in JSON the context
// blocks come first, then the system message.
func (r *memoryCommand) show(ctx context.Context, app *runtime.App) error {
	m, err := r.conversation(ctx, app)
	if err != nil {
		return err
	}
	window, err := m.Window(ctx, r.session)
	if err != nil {
		return err
	}
	beside, err := m.PreviewContext(ctx, r.session)
	if err != nil {
		return err
	}
	if r.format.value == "json" {
		if beside != nil {
			if err := jsonLines(r.out, beside.Parts); err != nil {
				return err
			}
		}
		entries := slices.Clone(window.Entries)
		if window.System != nil {
			entries = slices.Insert(entries, window.SystemAt, window.System)
		}
		return jsonLines(r.out, messagesJSON(entries...))
	}
	rule, err := lastFlush(ctx, m, r.session)
	if err != nil {
		return err
	}
	p := r.printer()
	p.Context = beside
	return p.Window(window, rule)
}

// printer draws as wide as the terminal, and the same everywhere else.
func (r *memoryCommand) printer() *show.Printer {
	p := &show.Printer{Out: r.out}
	if r.outTerminal {
		p.Width = r.width
	}
	return p
}

// lastFlush tells of the newest flush of a session; empty where there was none.
func lastFlush(ctx context.Context, m *memory.Memory, session string) (string, error) {
	messages, last := 0, memory.Event{}
	for ev, err := range m.Events(ctx, session) {
		if err != nil {
			return "", err
		}
		if ev.Kind == memory.EventFlush {
			messages += ev.Messages
			last = ev
		}
	}
	if messages == 0 {
		return "", nil
	}
	return fmt.Sprintf("%s flushed, last on %s (over %s: %s tokens left)", show.Messages(messages),
		last.Time.Local().Format("2006-01-02 15:04"), limitOf(last), show.Thousands(last.Tokens)), nil
}

// limitOf is the limit that a flush was over, with its unit where that is not tokens.
func limitOf(e memory.Event) string {
	if e.Unit == memory.InTokens || e.Unit == "" {
		return show.Thousands(e.Limit)
	}
	return show.Thousands(e.Limit) + " " + string(e.Unit)
}

func newHistory(s *streams) *cobra.Command {
	r := &memoryCommand{streams: s}
	return r.withFormat(r.withSession(r.command("history", "Show everything that was said in a session", r.history)))
}

// history prints all that was said, a line across before each turn. It holds one message at a time.
func (r *memoryCommand) history(ctx context.Context, app *runtime.App) error {
	m, err := r.conversation(ctx, app)
	if err != nil {
		return err
	}
	p := r.printer()
	notes, err := contextNotes(ctx, m, r.session)
	if err != nil {
		return err
	}
	turn, status := int64(-1), ""
	for e, err := range m.History(ctx, r.session) {
		if err == nil && r.format.value == "json" {
			err = jsonLines(r.out, messagesJSON(&e))
		} else if err == nil {
			if e.Turn != turn {
				turn = e.Turn
				parts := []string{fmt.Sprint("turn ", e.Turn), e.Time.Local().Format("2006-01-02 15:04"), e.Status.String()}
				err = p.Rule(strings.Join(append(parts, notes[e.Turn]...), " · "))
			} else if e.Status.String() != status { // a turn that left the window in part
				err = p.Rule(e.Status.String() + " from here")
			}
			status = e.Status.String()
			if err == nil {
				err = p.Message(e.Message, e.Tokens)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// contextNotes tell of each turn what it did to the session's context.
func contextNotes(ctx context.Context, m *memory.Memory, session string) (map[int64][]string, error) {
	notes := map[int64][]string{}
	for ev, err := range m.Events(ctx, session) {
		switch {
		case err != nil:
			return nil, err
		case ev.Kind == memory.EventVariables:
			turn := max(ev.Turn, 1) // values may be set before anything is said
			notes[turn] = append(notes[turn], ev.Reason)
		case ev.Kind == memory.EventSummary:
			notes[ev.Turn] = append(notes[ev.Turn], show.Messages(ev.Messages)+" folded")
		}
	}
	return notes, nil
}

// messageJSON is a message of a history or a window as JSON.
type messageJSON struct {
	Seq     int64           `json:"seq"`
	Turn    int64           `json:"turn"`
	Status  string          `json:"status"`
	Tokens  int             `json:"tokens"`
	Time    time.Time       `json:"time,omitzero"` // none of a step's system message, which nobody said
	Message json.RawMessage `json:"message"`
}

// messagesJSON are entries as JSON lines write them.
func messagesJSON(entries ...*memory.Entry) []messageJSON {
	all := make([]messageJSON, 0, len(entries))
	for _, e := range entries {
		text, err := json.Marshal(e.Message)
		if err != nil {
			text = []byte("null") // a message always has a written form
		}
		all = append(all, messageJSON{e.Seq, e.Turn, e.Status.String(), e.Tokens, e.Time, text})
	}
	return all
}

// jsonLines writes one JSON object a line.
func jsonLines[T any](w io.Writer, lines []T) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

func newClear(s *streams) *cobra.Command {
	r := &memoryCommand{streams: s}
	c := r.withSession(r.command("clear", "Forget a session: its window, its history and its context", r.clear))
	c.Flags().Lookup("session").Usage = "the session's `ID`"
	c.Flags().BoolVar(&r.all, "all", false, "forget all sessions")
	return c
}

// clear forgets one session, or with --all every one of the memory.
func (r *memoryCommand) clear(ctx context.Context, app *runtime.App) error {
	declared, err := r.one(app.Spec())
	if err != nil {
		return err
	}
	m := app.Memory(declared.ID)
	if r.all && r.session != "" {
		return usagef("--session and --all exclude each other")
	}
	if !r.all {
		if r.session == "" {
			return usagef("which session? --session names one, --all means all")
		}
		if _, err := r.conversation(ctx, app); err != nil {
			return err
		}
		if err := m.Clear(ctx, r.session); err != nil {
			return err
		}
		_, err = fmt.Fprintf(r.out, "memory %s: session %s forgotten\n", declared.ID, clean(r.session))
		return err
	}
	sessions, err := m.Sessions(ctx)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		if err := m.Clear(ctx, s.Session); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(r.out, "memory %s: %s forgotten\n", declared.ID, count(len(sessions), "session"))
	return err
}

// printWarnings says in one line that a document has warnings; validate shows them.
func (s *streams) printWarnings(path string, faults diag.List) {
	if n := faults.Warnings(); n > 0 {
		fmt.Fprintf(s.err, "%s: qtype validate %s shows what\n", count(n, "warning"), clean(path))
	}
}
