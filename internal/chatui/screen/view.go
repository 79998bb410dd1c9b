package screen

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// continued is the prompt of further lines of a message.
const continued = "...> "

// frames are the pictures of the spinner.
var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// View draws the screen: what is not complete, what is waited for, the text, the status.
func (m *model) View() tea.View {
	if m.closed {
		return tea.NewView("")
	}
	above := m.activityRows()
	below := m.notes()
	input, x, y := m.inputRows()
	if status := m.statusRow(); status != "" {
		below = append(below, status)
	}
	room := max(m.height-1, 1)
	if len(input) > room {
		from := min(max(y-room+1, 0), len(input)-room)
		input, y = input[from:from+room], y-from
	}
	below = below[:min(len(below), room-len(input))]
	above = above[:min(len(above), room-len(input)-len(below))]
	var pending []string
	for _, line := range m.pending {
		pending = append(pending, m.cut(line))
	}
	pending = pending[len(pending)-min(len(pending), room-len(input)-len(below)-len(above)):]
	view := tea.NewView(strings.Join(slices.Concat(pending, above, input, below), "\n"))
	if len(input) > 0 {
		view.Cursor = tea.NewCursor(x, y+len(pending)+len(above))
		view.Cursor.Blink = false
	}
	return view
}

// styled returns a text in a style, which is a parameter of a sequence.
func (m *model) styled(parameter, text string) string {
	if !m.options.Color || text == "" {
		return text
	}
	return "\x1b[" + parameter + "m" + text + "\x1b[m"
}

// cut shortens a line to the terminal.
func (m *model) cut(text string) string { return m.measure.Truncate(text, m.width, "…") }

// activityRows shows what is waited for.
func (m *model) activityRows() []string {
	if m.activity == "" || m.asker != nil {
		return nil
	}
	text := frames[m.frame%len(frames)] + " " + m.activity
	if passed := time.Since(m.since); passed >= time.Second {
		text += fmt.Sprintf(" · %d s", int(passed.Seconds()))
	}
	return []string{m.styled("2", m.cut(text+" · Ctrl-C stops it"))}
}

// maxChoices bounds the rows with candidates of a completion.
const maxChoices = 4

// notes shows a hint or the candidates of a completion.
func (m *model) notes() []string {
	if m.hint != "" {
		return []string{m.styled("2", m.cut(m.hint))}
	}
	var rows []string
	row := ""
	for i, choice := range m.choices {
		choice = strings.TrimSpace(oneLine(choice))
		if row != "" && m.measure.StringWidth(row+"  "+choice) > m.width {
			if rows = append(rows, m.cut(row)); len(rows) == maxChoices {
				return append(rows, fmt.Sprintf("… and %d more", len(m.choices)-i))
			}
			row = ""
		}
		if row != "" {
			row += "  "
		}
		row += choice
	}
	if row != "" {
		rows = append(rows, m.cut(row))
	}
	return rows
}

// statusRow shows as many parts of the status as fit.
func (m *model) statusRow() string {
	row := ""
	for i, part := range m.status {
		next := part
		if i > 0 {
			next = row + " · " + part
		}
		if i > 0 && m.measure.StringWidth(next) > m.width-1 {
			break
		}
		row = next
	}
	return m.styled("2", m.cut(row))
}

// inputRows returns the rows of the text that is edited, and the place of the cursor. There
// are none during an activity, unless the user has typed something.
func (m *model) inputRows() (rows []string, x, y int) {
	prompt, text := m.prompt, m.current()
	switch {
	case m.asker != nil:
		prompt = m.question
	case m.search != nil:
		prompt = m.search.prompt()
	case m.reader == nil && text.Empty():
		return nil, 0, 0
	}
	l := layout{model: m}
	for cell := range strings.SplitSeq(prompt, "") {
		l.add(cell)
	}
	for i, cell := range text.Cells() {
		if cell != "\n" {
			cell = sanitize(cell)
		}
		if i == text.Cursor() {
			x, y = l.place(m.measure.StringWidth(cell))
		}
		if cell == "\n" {
			l.end()
			l.row, l.used = continued, len(continued)
			continue
		}
		l.add(cell)
	}
	if text.Cursor() == len(text.Cells()) {
		x, y = l.place(1)
	}
	l.end()
	return l.window(x, y)
}

// layout breaks a text into rows.
type layout struct {
	model *model
	rows  []string
	row   string
	used  int
}

// place returns where a character of some columns will be.
func (l *layout) place(width int) (x, y int) {
	if l.used+width > l.model.width {
		l.end()
	}
	return l.used, len(l.rows)
}

func (l *layout) add(cell string) {
	width := l.model.measure.StringWidth(cell)
	if l.used+width > l.model.width && l.used > 0 {
		l.end()
	}
	l.row += cell
	l.used += width
}

func (l *layout) end() {
	l.rows = append(l.rows, l.row)
	l.row, l.used = "", 0
}

// window returns the rows around the cursor, at most half of the terminal.
func (l *layout) window(x, y int) ([]string, int, int) {
	room := max(l.model.height/2, 1)
	if len(l.rows) <= room {
		return l.rows, x, y
	}
	from := min(max(y-room+1, 0), len(l.rows)-room)
	return l.rows[from : from+room], x, y - from
}
