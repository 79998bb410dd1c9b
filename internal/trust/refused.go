package trust

import (
	"errors"
	"os"
)

// RefusedError reports what a document may not do.
type RefusedError struct {
	Action string // what was refused, such as: read the file /etc/passwd
	Reason string // why, such as: the document is from an address, so it is untrusted
	Flag   string // the flag that would allow it; empty if there is none
}

// Error names what was refused and what would allow it.
func (e *RefusedError) Error() string {
	text := "the document may not " + e.Action + ": " + e.Reason
	if e.Flag != "" {
		text += "; allow it with " + e.Flag
	}
	return text
}

// errDangling is the error of a link whose target does not exist.
var errDangling = errors.New("a symbolic link to a file that does not exist")

// refuse returns the error for an action that a flag allows. An untrusted document can be
// trusted as a whole.
func (p *Policy) refuse(action, flag string) error {
	e := &RefusedError{Action: action, Reason: "it is sandboxed", Flag: flag}
	if p.Level == Untrusted {
		e.Reason = "it is untrusted, because it is from an address"
		if p.Changed {
			e.Reason = "it is untrusted, because it has changed since it was trusted"
		}
		if e.Flag != "" {
			e.Flag += ", or everything with "
		}
		e.Flag += "--trust"
	}
	return e
}

// refuse returns the error for an action that the organization does not allow.
func (l *Limits) refuse(action, key string) error {
	return &RefusedError{Action: action, Reason: "the policy of the organization, " + l.File + ", does not list it under " + key}
}

// isLink reports whether a path is a symbolic link.
func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeSymlink != 0
}
