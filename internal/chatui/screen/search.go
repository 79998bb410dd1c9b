package screen

import "strings"

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
