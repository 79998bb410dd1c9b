package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Header tells what a run is of. A run may go on with a journal whose header
// says the same in all but Started and Run.
type Header struct {
	Started time.Time         `json:"started"`        // when the run began
	Run     string            `json:"run"`            // a name that no other run has; the turns of memories are known by it
	Input   File              `json:"input"`          // the file whose rows are run
	Offset  int64             `json:"offset"`         // rows of the file that are passed over
	Limit   int64             `json:"limit"`          // rows that are run after those, 0 for all
	Flow    string            `json:"flow"`           // the flow's id
	Parts   map[string]string `json:"parts"`          // digests of what the flow is made of, by name, such as "step draft"
	Options map[string]string `json:"options"`        // the settings that change what comes out, by the flag's name
	Columns []string          `json:"columns"`        // of the output
	Form    int               `json:"form,omitempty"` // how the run writes what its rows became; another form is another version's
}

// File tells a file from another, or from what it was before.
type File struct {
	Path     string    `json:"path"`             // absolute
	Size     int64     `json:"size"`             // in bytes
	Modified time.Time `json:"modified"`         // when it was last changed
	Digest   string    `json:"sha256,omitempty"` // of the content, of a file that is not too long to be read for it
}

// maxDigestBytes is the size in bytes up to which a file's content is compared; of
// a longer one the time of its last change must do.
const maxDigestBytes = 64 << 20

// Describe looks at a file.
func Describe(path string) (File, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return File{}, err
	}
	info, err := os.Stat(abs)
	if err != nil {
		return File{}, err
	}
	f := File{Path: abs, Size: info.Size(), Modified: info.ModTime().UTC()}
	if f.Size > maxDigestBytes {
		return f, nil
	}
	f.Digest, err = digest(abs)
	return f, err
}

func digest(path string) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = in.Close() }() // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, in); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// same tells whether the content is the same.
func (f File) same(g File) bool {
	switch {
	case f.Size != g.Size:
		return false
	case f.Digest != "" && g.Digest != "":
		return f.Digest == g.Digest
	}
	return f.Modified.Equal(g.Modified)
}

// Changes names what a run that is now asked for has different from the one
// that the journal is of; nothing where it may go on.
func (h Header) Changes(now Header) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	switch {
	case h.Input.Path != now.Input.Path && !h.Input.same(now.Input):
		add("the input is %s, was %s", now.Input.Path, h.Input.Path)
	case h.Input.Size != now.Input.Size:
		add("the input %s has %d bytes, had %d", now.Input.Path, now.Input.Size, h.Input.Size)
	case !h.Input.same(now.Input):
		add("the input %s was changed on %s", now.Input.Path, now.Input.Modified.Format("2006-01-02 at 15:04:05 UTC"))
	}
	if h.Flow != now.Flow {
		add("the flow is %s, was %s", now.Flow, h.Flow)
	}
	if h.Offset != now.Offset {
		add("--offset is %d, was %d", now.Offset, h.Offset)
	}
	if h.Limit != now.Limit {
		add("--limit is %d, was %d", now.Limit, h.Limit)
	}
	all = append(all, differ(h.Options, now.Options, func(k, was, is string) string {
		return fmt.Sprintf("--%s is %q, was %q", k, is, was)
	})...)
	if h.Flow == now.Flow {
		all = append(all, differ(h.Parts, now.Parts, func(k, was, is string) string {
			switch "" {
			case was:
				return k + " is new"
			case is:
				return k + " is gone"
			}
			return k + " was changed"
		})...)
	}
	if len(all) == 0 && h.Form != now.Form {
		add("the journal is of another version of qtype")
	}
	if len(all) == 0 && !slices.Equal(h.Columns, now.Columns) {
		add("the output's columns are %q, were %q", now.Columns, h.Columns)
	}
	return all
}

// differ tells the keys whose values differ, in alphabetical order.
func differ(was, is map[string]string, tell func(k, was, is string) string) []string {
	keys := map[string]bool{}
	for k := range was {
		keys[k] = true
	}
	for k := range is {
		keys[k] = true
	}
	var all []string
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if was[k] != is[k] {
			all = append(all, tell(k, was[k], is[k]))
		}
	}
	return all
}
