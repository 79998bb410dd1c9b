package screen

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxHistory is how many messages the history keeps.
const maxHistory = 1000

// maxHistoryLine bounds a line of the file, in bytes. Longer messages are not stored.
const maxHistoryLine = 64 << 10

// History is what the user has typed: messages and commands, but no answers to questions. A
// nil *History keeps nothing.
type History struct {
	path   string              // of the file; empty for none
	redact func(string) string // replaces secrets; a text that it changes is not stored
	lines  []string            // oldest first
}

// OpenHistory reads the history of a file, one JSON text a line. The file need not exist. An
// empty path is a history that is not stored. Messages that redact, which replaces secrets,
// would change are not stored; it may be nil.
func OpenHistory(path string, redact func(string) string) (*History, error) {
	h := &History{path: path, redact: redact}
	if path == "" {
		return h, nil
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		h.path = ""
		return h, fmt.Errorf("%s is not a regular file, so that nothing is stored there", path)
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	} else if err != nil {
		return h, err
	}
	defer func() { _ = file.Close() }() // only read
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 2*maxHistoryLine)
	stored := 0
	for lines.Scan() {
		var text string
		if json.Unmarshal(lines.Bytes(), &text) == nil && text != "" { // what another program wrote is left out
			h.lines = append(h.lines, text)
		}
		stored++
	}
	if stored > 2*maxHistory {
		h.lines = slices.Clone(h.lines[max(len(h.lines)-maxHistory, 0):])
		return h, errors.Join(lines.Err(), h.rewrite())
	}
	return h, lines.Err()
}

// Add adds a message, unless it is the newest one.
func (h *History) Add(text string) error {
	if h == nil || strings.TrimSpace(text) == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == text {
		return nil
	}
	h.lines = append(h.lines, text)
	if h.path == "" || len(text) > maxHistoryLine || h.redact != nil && h.redact(text) != text {
		return nil
	}
	return h.write(os.O_APPEND, text)
}

// rewrite replaces the file.
func (h *History) rewrite() error { return h.write(os.O_TRUNC, h.lines...) }

// write adds texts to the file, which only its owner may read.
func (h *History) write(flag int, texts ...string) error {
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(h.path, os.O_CREATE|os.O_WRONLY|flag, 0o600)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, text := range texts {
		line, err := json.Marshal(text)
		if err != nil {
			return errors.Join(err, file.Close())
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	err = file.Chmod(0o600) // of a file that another program made
	if err == nil {
		_, err = file.WriteString(b.String())
	}
	return errors.Join(err, file.Close())
}

// search looks for a text in the history, from the newest message to older ones.
type search struct {
	query string
	at    int    // how many messages back the shown one is; 0 for what was typed before
	draft string // what was typed before
	none  bool   // no message has the text
}

// onSearchKey handles a key during a search, or the one that begins it. It returns false for
// keys that have their usual meaning, which end the search: the message that was found stays.
func (m *model) onSearchKey(name, text string) bool {
	s := m.search
	if s == nil {
		if name != "ctrl+r" || m.asker != nil || m.options.History == nil {
			return false
		}
		m.search = &search{draft: m.edit.Text()}
		return true
	}
	switch {
	case text != "":
		s.query += oneLine(text)
		m.find(max(s.at, 1), +1)
	case name == "ctrl+r":
		m.find(s.at+1, +1)
	case name == "ctrl+s":
		m.find(s.at-1, -1)
	case name == "backspace", name == "ctrl+h":
		if runes := []rune(s.query); len(runes) > 0 {
			s.query = string(runes[:len(runes)-1])
		}
		m.find(1, +1)
	case name == "ctrl+g":
		m.cancelSearch()
	default:
		m.search, m.recall, m.draft = nil, s.at, s.draft
		return name == "esc"
	}
	return true
}

// find shows the first message that has the text of the search, without regard to case, from
// one that is some messages back. What is shown already is not shown again.
func (m *model) find(from, step int) {
	s, lines := m.search, m.options.History.lines
	shown := ""
	if s.at > 0 {
		shown = lines[len(lines)-s.at]
	}
	query := strings.ToLower(s.query)
	for at := from; query != "" && at > 0 && at <= len(lines); at += step {
		line := lines[len(lines)-at]
		if strings.Contains(strings.ToLower(line), query) && (at == s.at || s.at == 0 || line != shown) {
			s.at, s.none = at, false
			m.edit.Set(line)
			return
		}
	}
	s.none = query != ""
}

// cancelSearch ends the search and shows again what was typed before.
func (m *model) cancelSearch() {
	m.edit.Set(m.search.draft)
	m.search = nil
}

// prompt returns what the line begins with during the search.
func (s *search) prompt() string {
	if s.none {
		return "no match for \"" + s.query + "\"> "
	}
	return "search \"" + s.query + "\"> "
}
