// Package editor edits a text of one or several lines by keys, character by character as a
// reader sees them: a letter with its combining marks, or an emoji of several code points.
package editor

import (
	"slices"
	"strings"
	"unicode"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// Editor is a text with a cursor. The zero value is an empty text.
type Editor struct {
	cells  []string // the characters
	at     int      // the cursor is before this character
	killed string   // what was deleted to the end or to the start of a line, or as a word
}

// Text returns the text.
func (e *Editor) Text() string { return strings.Join(e.cells, "") }

// Empty reports whether there is no text.
func (e *Editor) Empty() bool { return len(e.cells) == 0 }

// Cells returns the characters; the caller must not change them.
func (e *Editor) Cells() []string { return e.cells }

// Cursor returns the number of characters before the cursor.
func (e *Editor) Cursor() int { return e.at }

// Before returns the text before the cursor.
func (e *Editor) Before() string { return strings.Join(e.cells[:e.at], "") }

// Set replaces the text and moves the cursor to its end.
func (e *Editor) Set(text string) {
	e.cells = split(clean(text))
	e.at = len(e.cells)
}

// Insert adds text at the cursor. Line ends become "\n"; control characters, which a terminal
// may act upon, are left out.
func (e *Editor) Insert(text string) {
	before := e.Before() + clean(text)
	after := strings.Join(e.cells[e.at:], "")
	e.cells = split(before + after) // the text may join the characters around it
	e.at = 0
	for length := 0; e.at < len(e.cells) && length < len(before); e.at++ {
		length += len(e.cells[e.at])
	}
}

// Replace replaces the text from a byte position of Before to the cursor.
func (e *Editor) Replace(from int, text string) {
	before := e.Before()[:from]
	after := strings.Join(e.cells[e.at:], "")
	e.cells, e.at = split(after), 0
	e.Insert(before + text)
}

// split returns the characters of a text.
func split(text string) []string {
	var cells []string
	for it := graphemes.FromString(text); it.Next(); {
		cells = append(cells, it.Value())
	}
	return cells
}

// clean removes what a text must not have: see Insert.
func clean(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// actions is the table of the keys that edit, by the names that Key receives.
var actions = map[string]func(*Editor){
	"left": (*Editor).left, "ctrl+b": (*Editor).left,
	"right": (*Editor).right, "ctrl+f": (*Editor).right,
	"home": (*Editor).lineStart, "ctrl+a": (*Editor).lineStart,
	"end": (*Editor).lineEnd, "ctrl+e": (*Editor).lineEnd,
	"alt+b": (*Editor).wordLeft, "alt+left": (*Editor).wordLeft, "ctrl+left": (*Editor).wordLeft,
	"alt+f": (*Editor).wordRight, "alt+right": (*Editor).wordRight, "ctrl+right": (*Editor).wordRight,
	"backspace": (*Editor).backspace, "ctrl+h": (*Editor).backspace,
	"delete": (*Editor).deleteNext, "ctrl+d": (*Editor).deleteNext,
	"ctrl+w": (*Editor).killWordLeft, "alt+backspace": (*Editor).killWordLeft, "ctrl+backspace": (*Editor).killWordLeft,
	"alt+d":  (*Editor).killWordRight,
	"ctrl+u": func(e *Editor) { e.killTo((*Editor).lineStart) },
	"ctrl+k": func(e *Editor) { e.killTo((*Editor).lineEnd) },
	"ctrl+y": func(e *Editor) { e.Insert(e.killed) },
	"ctrl+j": newLine, "alt+enter": newLine, "shift+enter": newLine,
}

// Key applies a key and reports whether it edits.
func (e *Editor) Key(name string) bool {
	act := actions[name]
	if act != nil {
		act(e)
	}
	return act != nil
}

// Up moves the cursor one line up. It returns false in the first line.
func (e *Editor) Up() bool { return e.toLine(-1) }

// Down moves the cursor one line down. It returns false in the last line.
func (e *Editor) Down() bool { return e.toLine(+1) }

func newLine(e *Editor) { e.Insert("\n") }

func (e *Editor) left()  { e.at = max(e.at-1, 0) }
func (e *Editor) right() { e.at = min(e.at+1, len(e.cells)) }

func (e *Editor) lineStart() {
	for e.at > 0 && e.cells[e.at-1] != "\n" {
		e.at--
	}
}

func (e *Editor) lineEnd() {
	for e.at < len(e.cells) && e.cells[e.at] != "\n" {
		e.at++
	}
}

// isWord reports whether a character belongs to a word.
func isWord(cell string) bool {
	return strings.ContainsFunc(cell, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
}

func (e *Editor) wordLeft() {
	for e.at > 0 && !isWord(e.cells[e.at-1]) {
		e.at--
	}
	for e.at > 0 && isWord(e.cells[e.at-1]) {
		e.at--
	}
}

func (e *Editor) wordRight() {
	for e.at < len(e.cells) && !isWord(e.cells[e.at]) {
		e.at++
	}
	for e.at < len(e.cells) && isWord(e.cells[e.at]) {
		e.at++
	}
}

func (e *Editor) backspace() {
	if e.at > 0 {
		e.at--
		e.deleteNext()
	}
}

func (e *Editor) deleteNext() {
	if e.at < len(e.cells) {
		e.cells = slices.Delete(e.cells, e.at, e.at+1)
	}
}

// killTo deletes from the cursor to where a movement ends.
func (e *Editor) killTo(move func(*Editor)) {
	from := e.at
	move(e)
	to := e.at
	if from > to {
		from, to = to, from
	}
	e.killed = strings.Join(e.cells[from:to], "")
	e.cells = slices.Delete(e.cells, from, to)
	e.at = from
}

func (e *Editor) killWordRight() { e.killTo((*Editor).wordRight) }

// killWordLeft deletes back to the previous white space.
func (e *Editor) killWordLeft() {
	e.killTo(func(e *Editor) {
		for e.at > 0 && strings.TrimSpace(e.cells[e.at-1]) == "" {
			e.at--
		}
		for e.at > 0 && strings.TrimSpace(e.cells[e.at-1]) != "" {
			e.at--
		}
	})
}

// toLine moves the cursor to the line before or after, to the same column.
func (e *Editor) toLine(step int) bool {
	at := e.at
	e.lineStart()
	column := at - e.at
	switch {
	case step < 0 && e.at == 0:
		e.at = at
		return false
	case step < 0:
		e.at--
		e.lineStart()
	default:
		if e.lineEnd(); e.at == len(e.cells) {
			e.at = at
			return false
		}
		e.at++
	}
	for ; column > 0 && e.at < len(e.cells) && e.cells[e.at] != "\n"; column-- {
		e.at++
	}
	return true
}
