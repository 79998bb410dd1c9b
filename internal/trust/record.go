package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
)

// Record is what a user has trusted: a document by the digest of its files.
type Record struct {
	Document string `json:"document"` // its address
	Digest   string `json:"digest"`   // of the document and its includes
}

// State is what is known about a document.
type State int

// The states.
const (
	Unknown State = iota // the document was never trusted
	Changed              // another version of it was trusted
	Known                // it was trusted as it is
)

// Digest is the digest of the files of a document.
type Digest struct{ sum hash.Hash }

// NewDigest returns the digest of no files.
func NewDigest() *Digest { return &Digest{sha256.New()} }

// Add adds a file. The order of the files matters.
func (d *Digest) Add(name string, text []byte) {
	fmt.Fprintf(d.sum, "%d %s %d ", len(name), name, len(text)) // a hash returns no error
	d.sum.Write(text)
}

// String returns the digest.
func (d *Digest) String() string { return "sha256:" + hex.EncodeToString(d.sum.Sum(nil)) }

// path returns the file of a record below the folder of the user's state.
func (r Record) path(state string) string {
	sum := sha256.Sum256([]byte(r.Document))
	return filepath.Join(state, "trusted", hex.EncodeToString(sum[:])+".json")
}

// Find compares a document with the one that was trusted at its address.
func (r Record) Find(state string) (State, error) {
	if state == "" {
		return Unknown, nil
	}
	text, err := os.ReadFile(r.path(state))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Unknown, nil
	case err != nil:
		return Unknown, err
	}
	var known Record
	if err := json.Unmarshal(text, &known); err != nil || known != r {
		return Changed, nil //nolint:nilerr // a damaged record trusts nothing
	}
	return Known, nil
}

// Save records that a document is trusted.
func (r Record) Save(state string) error {
	if state == "" {
		return errors.New("there is no home folder; set QTYPE_HOME")
	}
	path := r.path(state)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

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
