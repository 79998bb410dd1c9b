package erasure

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// Write writes a receipt as text: a line for each item, and a summary.
func (r *Receipt) Write(w io.Writer) error {
	for _, one := range r.Deleted {
		name := terminal.Clean(one.ID)
		switch {
		case one.Memory != "" && one.Messages > 0:
			fmt.Fprintf(w, "deleted  memory %s: %s (%s)\n", one.Memory, name, textfmt.Count(one.Messages, "message"))
		case one.Memory != "":
			fmt.Fprintf(w, "deleted  memory %s: %s\n", one.Memory, name)
		default:
			fmt.Fprintf(w, "deleted  %s %s\n", one.Kind, name)
		}
	}
	for _, one := range r.Caches {
		fmt.Fprintf(w, "cleared  cache of step %s: %s\n", terminal.Clean(one.Step), textfmt.Count(one.Results, "result"))
	}
	for _, path := range r.Journals {
		fmt.Fprintf(w, "deleted  journal %s\n", terminal.Clean(filepath.ToSlash(path)))
	}
	for _, id := range r.Kept {
		fmt.Fprintf(w, "kept     memory %s has scope app: all users share its conversation\n", id)
	}
	_, err := fmt.Fprintf(w, "user %s: %s deleted, %s searched\n", terminal.Clean(r.User),
		textfmt.Count(len(r.Deleted)+len(r.Journals), "item"), textfmt.Count(len(r.Searched), "place"))
	return err
}
