package memoryview

import (
	"cmp"
	"fmt"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/memory/search"
)

// Found writes the messages that a search found, one a line, the best first: of long ones the passage.
func (v *View) Found(found []search.Message) error {
	if v.JSON {
		return terminal.WriteJSON(v.Out, found...)
	}
	if len(found) == 0 {
		_, err := fmt.Fprintln(v.Out, "no messages found")
		return err
	}
	for _, m := range found {
		author := cmp.Or(m.Name, string(m.Role))
		if _, err := fmt.Fprintf(v.Out, "%s  %s, turn %d  %s: %s\n", m.Time.Local().Format("2006-01-02 15:04"),
			terminal.Clean(m.Session), m.Turn, terminal.Clean(author), terminal.Clean(cmp.Or(m.Passage, m.Content))); err != nil {
			return err
		}
	}
	return nil
}
