package evalrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/apptest/testrun"
	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/recording"
	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/tool/mockstate"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/source"
	"github.com/qtype-dev/qtype/steps"
)

// userRows returns a row for each simulated user.
func (e *Evaluation) userRows() (*dataset, error) {
	if e.config.Session != "" {
		return nil, &UsageError{"--session-column is for data: each user has a session"}
	}
	d := &dataset{path: e.config.Path, mark: "-trial-"}
	failed := e.config.OnlyFailed.failedRows()
	for i, u := range e.users {
		number := int64(i) + 1
		if e.config.OnlyFailed != nil && !failed[number] {
			continue
		}
		if e.config.Limit > 0 && int64(len(d.rows)) == e.config.Limit {
			break
		}
		state, err := textfmt.CompactJSON(u.State)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", u.Declared.ID, err)
		}
		declared := linesOf(u.Declared.Position().Span())
		if u.Attack != nil {
			declared = u.Attack.Payload
		}
		d.rows = append(d.rows, dataRow{Record: records.Record{Number: number, Columns: []string{"user", "declared", "state"}, Values: []any{u.Declared.ID, declared, string(state)}},
			session: fmt.Sprintf("user-%d", number), user: u})
	}
	if len(d.rows) == 0 {
		return nil, fmt.Errorf("%s: no user failed in the report", d.path)
	}
	return d, nil
}

// linesOf returns the lines of a span.
func linesOf(span source.Span) string {
	var b strings.Builder
	for n := span.Start.Line; span.File != nil && n <= span.End.Line; n++ {
		b.WriteString(span.File.Line(n) + "\n")
	}
	return b.String()
}

// place is where the rows of a session run.
type place struct {
	app      *runtime.App
	err      error              // why there is no app
	own      bool               // the app is that of the session
	state    *mockstate.State   // of the mocks of tools; nil without users
	recorded *recording.Session // nil if the file declares no recordings
	payload  string             // the text of an attack
	systems  []string           // the system messages that an attack could reach
}

// place returns where a group runs: the shared application of its variant, or one that keeps what is recorded, or changed in a state, apart.
func (x *execution) place(g group) *place {
	if len(x.users) == 0 && x.recorded == nil {
		return &place{app: x.apps[g.variant]}
	}
	row := &x.data.rows[g.rows[0]]
	p := &place{own: true, recorded: x.session(x.nameOf(row), g.variant, g.trial)}
	var attack *eval.Attack
	if row.user != nil {
		p.state, attack = mockstate.New(row.user.State), row.user.Attack
	}
	p.app, p.err = x.newApp(g.variant, p, attack)
	return p
}

// nameOf returns the name of a session in recordings.
func (x *execution) nameOf(r *dataRow) string {
	switch {
	case r.user != nil:
		return "user " + r.user.Declared.ID
	case r.shared:
		return "session " + r.session
	}
	return fmt.Sprintf("row %d", r.Number)
}

// recordingName names the recordings of a session with a variant in a trial, from 0.
func (x *execution) recordingName(name string, variant, trial int) string {
	return fmt.Sprintf("%s, %s, trial %d", name, x.variants[variant].declared.ID, trial+1)
}

// session starts the recordings of a session; nil if the file declares none.
func (x *execution) session(name string, variant, trial int) *recording.Session {
	if x.recorded == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return recording.Start(x.recorded, x.recordingName(name, variant, trial), x.config.Record)
}

// newApp makes the application of a variant for a place.
func (x *execution) newApp(variant int, p *place, attack *eval.Attack) (*runtime.App, error) {
	r, recorded := Replacement{Tools: x.tools, State: p.state}, p.recorded
	if recorded != nil {
		r.Mocks = testrun.Recorded(recorded)
	}
	r.Mocks.NoStepCache = x.trials > 1 || recorded != nil
	if attack != nil {
		p.carried(&r, attack)
		flows := x.variants[variant].program.App.Flows
		p.systems = systemsOf(flows[slices.IndexFunc(flows, func(f *spec.Flow) bool { return f.ID == x.flow.ID })])
	}
	app, err := x.variants[variant].program.New(r)
	if err == nil && recorded != nil {
		testrun.HideSecrets(recorded, app)
	}
	return app, err
}

// startRow begins the row of the place with a number, from 0.
func (p *place) startRow(n int) {
	if p.recorded != nil {
		p.recorded.StartTurn(n + 1)
	}
}

// leave closes the application of a session and keeps what was recorded.
func (x *execution) leave(ctx context.Context, p *place) error {
	if !p.own {
		return nil
	}
	if p.recorded != nil && x.config.Record != recording.Replay {
		x.mu.Lock()
		p.recorded.Commit(false)
		x.mu.Unlock()
	}
	if p.app == nil {
		return nil
	}
	return p.app.Close(ctx)
}

// saveRecordings writes what was recorded.
func (x *execution) saveRecordings() error {
	if x.recorded == nil || x.config.Record == recording.Replay {
		return nil
	}
	if err := x.recorded.Save(x.recordingNames()); err != nil {
		return fmt.Errorf("%s: cannot be written: %w", x.recorded.Path(), err)
	}
	return nil
}

// recordingNames returns the names of the recordings of all sessions.
func (x *execution) recordingNames() (names []string) {
	for i := range x.data.rows {
		for v := range x.variants {
			for t := range x.trials {
				names = append(names, x.recordingName(x.nameOf(&x.data.rows[i]), v, t))
			}
		}
	}
	return names
}

// Message is what was said in a conversation with a simulated user, and which tools were called before.
type Message struct {
	Role  string `json:"role"`            // user or application
	Text  string `json:"text"`            // what was said
	Calls []Call `json:"calls,omitempty"` // of tools, by the application for this answer
}

// Call is a call of a tool.
type Call struct {
	Tool      string `json:"tool"`             // the name that models see
	Arguments string `json:"arguments"`        // a JSON object
	Result    string `json:"result,omitempty"` // what the tool answered, or why it failed
}

// conversation is that of a simulated user with a flow.
type conversation struct {
	x     *execution
	user  *eval.User
	place *place
	input runtime.Input // of each turn, without what the user says
	used  *meter
	cited *passages

	systems    []string // the system messages that an attack could reach
	said       []Message
	waited     time.Duration // for the model that plays the user
	ended      bool          // by the user
	spent      float64       // money for it
	userFailed bool          // the model that plays the user failed

	mu    sync.Mutex
	calls []Call             // of the current turn
	ids   map[string]int     // the places of calls, by their ids
	made  []testrun.ToolCall // of all turns
}

// endMark ends a conversation.
const endMark = "[END]"

// run has the conversation, and returns the outputs of the last turn.
func (c *conversation) run(ctx context.Context) (outputs map[string]any, err error) {
	if err := c.prepare(ctx); err != nil {
		c.userFailed = true
		return nil, fmt.Errorf("the attack: %w", err)
	}
	message := c.opening()
	for turn := 1; ; turn++ {
		if c.place.recorded != nil {
			c.place.recorded.StartTurn(turn)
		}
		if turn > 1 || message == "" {
			if message, err = c.ask(ctx); err != nil {
				c.userFailed = true
				return outputs, fmt.Errorf("the simulated user: %w", err)
			}
		}
		if message != "" {
			c.said = append(c.said, Message{Role: "user", Text: message})
		}
		if c.ended {
			break
		}
		if outputs, err = c.turn(ctx, message); err != nil {
			return outputs, err
		}
		if turn >= c.user.Declared.MaxTurns {
			break
		}
	}
	return outputs, nil
}

// turn runs the flow with a message of the user.
func (c *conversation) turn(ctx context.Context, message string) (map[string]any, error) {
	in := c.input
	in.Columns, in.Cells = append(slices.Clone(in.Columns), c.x.talk.Message), append(slices.Clone(in.Cells), message)
	c.mu.Lock()
	c.calls, c.ids = nil, map[string]int{}
	c.mu.Unlock()
	outputs, err := runRow(ctx, c.place.app, c.x.flow.ID, in, runtime.WithObserver(c.used), runtime.WithEvents(c.listen, steps.EventToolCall, steps.EventToolResult, steps.EventSource))
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.said = append(c.said, Message{Role: "application", Text: c.x.answerText(outputs), Calls: c.calls})
	}
	return outputs, err
}

// listen keeps the calls of tools.
func (c *conversation) listen(ev steps.Event) {
	if ev.Kind == steps.EventSource {
		c.cited.listen(ev)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ev.Kind == steps.EventToolCall {
		c.ids[ev.CallID] = len(c.calls)
		c.calls, c.made = append(c.calls, Call{Tool: ev.Tool, Arguments: ev.Text}), append(c.made, testrun.ToolCall{Name: ev.Tool, Arguments: ev.Text})
		return
	}
	if i, known := c.ids[ev.CallID]; known {
		c.calls[i].Result = ev.Text
		if ev.Err != nil {
			c.calls[i].Result = "error: " + ev.Err.Error()
		}
	}
}

// The instructions of a model that plays a user, and its request for the first message.
const (
	userInstructions = `You play a person who writes to a program. What you get are the answers of the program; what you write is sent to it
as the message of that person. Write one message, as the person would type it, and nothing else: no quotes, no explanations, no role names.
Tell a fact only when it is needed or asked for. You know the facts below and what the program has said, and nothing else: if you are asked
for something that you do not know, say so, and invent nothing. Never act as the program, and do not help it.`
	userBegins = "(The conversation begins. Write the first message.)"
)

// role returns the instructions for the part of a user.
func role(u *spec.User) string {
	var b strings.Builder
	b.WriteString(userInstructions)
	fmt.Fprintf(&b, "\n\nWhat you want: %s\n", u.Goal)
	if len(u.Facts) > 0 {
		b.WriteString("What you know:\n")
		for _, f := range u.Facts {
			fmt.Fprintf(&b, "- %s\n", f)
		}
	}
	if u.Temper != "" {
		fmt.Fprintf(&b, "How you write: %s\n", u.Temper)
	}
	fmt.Fprintf(&b, "\nWrite %s at the end of your message, or alone, when this is so: %s", endMark,
		cmp.Or(u.Ends, "you have what you want, or it is clear that you do not get it"))
	return b.String()
}

// ask requests the next message of the user. It is empty if the user ends the conversation without a word.
func (c *conversation) ask(ctx context.Context) (string, error) {
	begin := time.Now()
	defer func() { c.waited += time.Since(begin) }()
	player, first := c.user.Script, ""
	if player == nil {
		first = userBegins
		var err error
		if player, err = c.x.judges.chat(c.user.Model.ID, c.place.recorded); err != nil {
			return "", err
		}
	}
	messages := []chat.Message{chat.Text(chat.System, role(c.user.Declared)), chat.Text(chat.User, first)}
	for _, m := range c.said {
		if m.Role == "user" {
			messages = append(messages, chat.Text(chat.Assistant, m.Text))
		} else {
			messages = append(messages, chat.Text(chat.User, cmp.Or(m.Text, "(an empty answer)")))
		}
	}
	answer, err := model.Call(ctx, player, model.Request{Messages: messages}, nil)
	if err != nil {
		return "", err
	}
	if c.user.Model != nil {
		c.spent += chargeOf(c.user.Model, answer)
	}
	text := strings.TrimSpace(answer.Message.Text())
	text, c.ended = strings.CutSuffix(text, endMark)
	if text = strings.TrimSpace(text); text == "" && !c.ended {
		return "", errors.New("the model that plays the user has written nothing")
	}
	return text, nil
}

// checked makes the scorer of the checks of a user.
func checked(*spec.Metric) scorer {
	return func(ctx context.Context, s *sample) (Score, error) {
		if s.with == nil {
			return Score{}, errors.New("the row has no simulated user")
		}
		if problems := s.with.check(ctx, s.outputs); len(problems) > 0 {
			return failed("%s", strings.Join(problems, "; ")), nil
		}
		return passed(), nil
	}
}

// check returns what is not as the checks of the user say.
func (c *conversation) check(ctx context.Context, outputs map[string]any) (problems []string) {
	if !c.ended {
		problems = append(problems, fmt.Sprintf("the user has not ended the conversation in %s", textfmt.Count(c.user.Declared.MaxTurns, "turn")))
	}
	checks := c.user.Declared.Checks
	if checks == nil {
		return problems
	}
	calls := &testrun.Calls{App: c.place.app.Spec(), Made: c.made}
	list := slices.Concat(calls.Check(checks.Calls), calls.CheckOrder(checks, checks.CallOrder), testrun.CheckRows(c.place.state, checks.State))
	for _, d := range list {
		problems = append(problems, d.Message)
	}
	problems = append(problems, c.checkEffects(checks)...)
	problems = append(problems, c.checkTexts(checks)...)
	return append(problems, checkConditions(ctx, checks, outputs)...)
}

// checkEffects compares the state with the one that the calls of the effects make.
func (c *conversation) checkEffects(checks *spec.Checks) []string {
	if _, given := checks.Position().Lookup("effects"); !given {
		return nil
	}
	want := mockstate.New(c.user.State)
	for _, e := range checks.Effects {
		own := slices.DeleteFunc(slices.Clone(c.x.tools), func(m *spec.ToolMock) bool { return m.ID != e.ID })
		if _, err := want.Call(own, e.Arguments); err != nil {
			return []string{fmt.Sprintf("the effect of %s cannot be computed: %s", e.ID, err)}
		}
	}
	return c.place.state.Differences(want)
}

// checkTexts checks what the application has said.
func (c *conversation) checkTexts(checks *spec.Checks) (problems []string) {
	has := func(text string) bool {
		return slices.ContainsFunc(c.said, func(m Message) bool { return m.Role != "user" && strings.Contains(m.Text, text) })
	}
	for _, text := range checks.Contains {
		if !has(text) {
			problems = append(problems, fmt.Sprintf("the application has not said %q", text))
		}
	}
	for _, text := range checks.Lacks {
		if has(text) {
			problems = append(problems, fmt.Sprintf("the application has said %q", text))
		}
	}
	return problems
}

// checkConditions checks conditions over the outputs of the last turn.
func checkConditions(ctx context.Context, checks *spec.Checks, outputs map[string]any) (problems []string) {
	for i := range checks.Expect {
		condition, err := steps.NewCondition(&checks.Expect[i])
		holds := false
		if err == nil {
			holds, err = condition.Holds(ctx, func(id string) (any, bool) { v, ok := outputs[id]; return v, ok })
		}
		switch {
		case err != nil:
			problems = append(problems, fmt.Sprintf("the condition %s cannot be evaluated: %s", checks.Expect[i].Text, err))
		case !holds:
			problems = append(problems, fmt.Sprintf("the condition %s is false", checks.Expect[i].Text))
		}
	}
	return problems
}
