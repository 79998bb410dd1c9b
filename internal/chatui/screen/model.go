package screen

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/qtype-dev/qtype/internal/chatui/editor"
)

// reply is what the user has entered, or that the input has ended.
type reply struct {
	text string
	err  error
}

// update changes the model.
type update func(*model) tea.Cmd

// tickMsg redraws the time of an activity.
type tickMsg struct{}

// completedMsg has the candidates of a completion.
type completedMsg struct {
	typed      string // for which they are
	from       int
	candidates []string
}

// model is the state of a screen, used by the goroutine of its program only.
type model struct {
	ctx      context.Context //nolint:containedctx // of the completions of this program
	options  *Options
	columns  *atomic.Int64
	width    int
	height   int
	measure  ansi.Method // how the terminal measures characters
	closed   bool
	hint     string   // one line below the text, until the next key
	choices  []string // candidates of a completion, until the next key
	ended    bool     // the input ends when the next message is waited for
	queued   bool     // the text is sent when the next message is waited for
	armed    bool     // the last key was Ctrl-C: another one ends the input
	pending  []string
	status   []string
	activity string
	since    time.Time
	frame    int

	interrupt func() // stops the activity

	prompt string
	edit   editor.Editor
	reader chan<- reply // who waits for a message; nil for none
	recall int          // how many messages back the history is shown; 0 for the draft
	draft  string       // what was typed before the history was shown
	search *search      // in the history; nil for none

	question string
	answer   editor.Editor
	asker    chan<- reply // who waits for the answer to the question; nil for none
}

func newModel(o *Options, columns *atomic.Int64) *model {
	return &model{options: o, columns: columns, width: o.Width, height: 24, measure: ansi.WcWidth}
}

// Init starts nothing.
func (m *model) Init() tea.Cmd { return nil }

// Update handles a message of the terminal or of the conversation.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case update:
		return m, msg(m)
	case tea.WindowSizeMsg:
		m.width, m.height = max(msg.Width, 1), max(msg.Height, 1)
		m.columns.Store(int64(m.width))
	case tea.ModeReportMsg: // the screen measures in the same way
		if msg.Mode == ansi.ModeUnicodeCore && (msg.Value == ansi.ModeReset || msg.Value == ansi.ModeSet || msg.Value == ansi.ModePermanentlySet) {
			m.measure = ansi.GraphemeWidth
		}
	case tea.KeyPressMsg:
		return m, m.onKey(msg.Key())
	case tea.PasteMsg:
		m.clearNotes()
		if m.search == nil || !m.onSearchKey("", msg.Content) {
			m.current().Insert(msg.Content)
		}
	case completedMsg:
		m.onCompleted(msg)
	case tickMsg:
		m.frame++
		return m, m.tick()
	}
	return m, nil
}

// tick redraws the activity some times a second.
func (m *model) tick() tea.Cmd {
	if m.activity == "" {
		return nil
	}
	return tea.Tick(100*time.Millisecond, func(time.Time) tea.Msg { return tickMsg{} })
}

// current returns the text that keys edit.
func (m *model) current() *editor.Editor {
	if m.asker != nil {
		return &m.answer
	}
	return &m.edit
}

func (m *model) clearNotes() { m.hint, m.choices, m.armed, m.queued = "", nil, false, false }

// onKey handles a key.
func (m *model) onKey(k tea.Key) tea.Cmd {
	name := k.Keystroke()
	if name == "ctrl+c" {
		m.onInterrupt()
		return nil
	}
	m.clearNotes()
	if m.onSearchKey(name, k.Text) {
		return nil
	}
	if k.Text != "" {
		m.current().Insert(k.Text)
		return nil
	}
	switch name {
	case "enter":
		m.onEnter()
	case "tab":
		return m.complete()
	case "ctrl+d":
		if m.current().Empty() {
			m.ended = m.reader == nil && m.asker == nil
			m.reply(reply{err: io.EOF})
			return nil
		}
		m.current().Key(name)
	case "up", "ctrl+p":
		if m.asker == nil && (name == "ctrl+p" || !m.edit.Up()) {
			m.recallBy(+1)
		}
	case "down", "ctrl+n":
		if m.asker == nil && (name == "ctrl+n" || !m.edit.Down()) {
			m.recallBy(-1)
		}
	case "ctrl+l":
		return tea.Sequence(tea.Raw(ansi.EraseEntireScreen+ansi.CursorHomePosition), tea.ClearScreen)
	case "ctrl+z":
		return tea.Suspend
	default:
		m.current().Key(name)
	}
	return nil
}

// reply gives what was entered to who waits for it.
func (m *model) reply(r reply) {
	switch {
	case m.asker != nil:
		m.asker <- r
		m.ask(nil, "")
	case m.reader != nil:
		m.reader <- r
		m.reader = nil
		m.edit.Set("")
		m.recall = 0
	}
}

// ask shows a question, or removes it.
func (m *model) ask(asker chan<- reply, question string) {
	m.asker, m.question, m.search = asker, question, nil
	m.answer.Set("")
}

func (m *model) onEnter() {
	switch {
	case m.asker != nil:
		m.reply(reply{text: m.answer.Text()})
	case m.edit.Cursor() > 0 && strings.HasSuffix(m.edit.Before(), `\`):
		m.edit.Key("backspace")
		m.edit.Insert("\n")
	case strings.TrimSpace(m.edit.Text()) == "":
	case m.reader == nil:
		m.queued = true
		m.hint = "it is sent when the answer is complete"
	default:
		m.send()
	}
}

// send gives the text to who waits for a message.
func (m *model) send() {
	text := m.edit.Text()
	if err := m.options.History.Add(text); err != nil {
		m.hint = "the history cannot be written: " + oneLine(err.Error())
		m.options.History.path = ""
	}
	m.reply(reply{text: text})
}

// read begins to wait for a message. What was sent or ended before is its answer.
func (m *model) read(reader chan<- reply, prompt, initial string) {
	m.reader, m.prompt = reader, prompt
	switch {
	case m.ended:
		m.reply(reply{err: io.EOF})
	case initial != "":
		m.search = nil
		m.edit.Set(initial)
	case m.queued:
		m.clearNotes()
		m.send()
	}
}

// onInterrupt stops the activity, or clears the text. The second time in a row it ends the
// input.
func (m *model) onInterrupt() {
	again := m.armed
	m.clearNotes()
	m.armed = true
	switch {
	case m.interrupt != nil:
		m.interrupt()
		if again {
			m.closeInput()
		}
	case m.search != nil:
		m.cancelSearch()
		m.armed = false
	case !m.edit.Empty():
		m.edit.Set("")
		m.recall, m.armed = 0, false
	case again:
		m.closeInput()
	default:
		m.hint = "Ctrl-C again or Ctrl-D ends the conversation"
	}
}

// closeInput ends the input: now, or when the next message is waited for.
func (m *model) closeInput() {
	m.ended = true
	if m.interrupt == nil {
		m.reply(reply{err: io.EOF})
	}
}

// recallBy shows an older or newer message of the history.
func (m *model) recallBy(step int) {
	h := m.options.History
	to := m.recall + step
	if h == nil || to < 0 || to > len(h.lines) {
		return
	}
	if m.recall == 0 {
		m.draft = m.edit.Text()
	}
	m.recall = to
	if to == 0 {
		m.edit.Set(m.draft)
		return
	}
	m.edit.Set(h.lines[len(h.lines)-to])
}

// complete looks for what can complete the text before the cursor.
func (m *model) complete() tea.Cmd {
	if m.asker != nil || m.options.Complete == nil {
		return nil
	}
	typed, ctx := m.edit.Before(), m.ctx
	return func() tea.Msg {
		from, candidates := m.options.Complete(ctx, typed)
		return completedMsg{typed, from, candidates}
	}
}

// onCompleted inserts the only candidate, or what all of them begin with.
func (m *model) onCompleted(c completedMsg) {
	if m.edit.Before() != c.typed || m.asker != nil {
		return // the user has typed on
	}
	switch len(c.candidates) {
	case 0:
		m.hint = "nothing completes this"
		return
	case 1:
		m.edit.Replace(c.from, c.candidates[0])
		return
	}
	common := c.candidates[0]
	for _, other := range c.candidates[1:] {
		for !strings.HasPrefix(other, common) {
			common = common[:len(common)-1]
		}
	}
	if common = strings.ToValidUTF8(common, ""); len(common) > len(c.typed)-c.from {
		m.edit.Replace(c.from, common)
	}
	m.choices = c.candidates
}
