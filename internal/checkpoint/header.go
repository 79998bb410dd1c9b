package checkpoint

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

// Header describes a run. A journal can be used to resume a run whose header
// differs in Started, Run, Command and Folder only.
type Header struct {
	Started  time.Time         `json:"started"`           // when the run began
	Run      string            `json:"run"`               // the unique id of the run, by which its turns of memories are found
	Input    File              `json:"input"`             // the file with the input rows; zero if there is none
	Flow     string            `json:"flow"`              // the flow's id
	Parts    map[string]string `json:"parts"`             // see Fingerprint
	Settings map[string]string `json:"settings"`          // other settings of the run that change its results, by name
	Keyed    bool              `json:"keyed"`             // whether the journal has a key; set by Create
	App      string            `json:"app,omitempty"`     // the application's id
	Command  []string          `json:"command,omitempty"` // the arguments of the command line; may be empty
	Folder   string            `json:"folder,omitempty"`  // the working directory of the command
}

// File describes a file, so that a change of its content is noticed.
type File struct {
	Path     string    `json:"path"`             // absolute
	Size     int64     `json:"size"`             // in bytes
	Modified time.Time `json:"modified"`         // the modification time
	Digest   string    `json:"sha256,omitempty"` // of the content; empty for a large file
}

// maxDigestBytes is the size in bytes up to which the contents of files are
// compared; for larger files the modification times are.
const maxDigestBytes = 64 << 20

// Describe describes a file.
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
	f.Digest, err = digestOf(abs)
	return f, err
}

func digestOf(path string) (string, error) {
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

// sameContent reports whether two files have the same content, as far as is known.
func (f File) sameContent(g File) bool {
	switch {
	case f.Size != g.Size:
		return false
	case f.Digest != "" && g.Digest != "":
		return f.Digest == g.Digest
	}
	return f.Modified.Equal(g.Modified)
}

// Changes lists how another run differs from the run of the journal. It is empty
// if the other run may resume it.
func (h Header) Changes(now Header) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	switch {
	case h.Input.Path != now.Input.Path && !h.Input.sameContent(now.Input):
		add("the input is %s, was %s", now.Input.Path, h.Input.Path)
	case h.Input.Size != now.Input.Size:
		add("the input %s has %d bytes, had %d", now.Input.Path, now.Input.Size, h.Input.Size)
	case !h.Input.sameContent(now.Input):
		add("the input %s was changed on %s", now.Input.Path, now.Input.Modified.Format("2006-01-02 at 15:04:05 UTC"))
	}
	if h.Flow != now.Flow {
		add("the flow is %s, was %s", now.Flow, h.Flow)
	}
	all = append(all, diffMaps(h.Settings, now.Settings, func(name, was, is string) string {
		return fmt.Sprintf("%s is %q, was %q", name, is, was)
	})...)
	if h.Flow == now.Flow {
		all = append(all, diffMaps(h.Parts, now.Parts, describePart)...)
	}
	return all
}

func describePart(name, was, is string) string {
	switch "" {
	case was:
		return name + " is new"
	case is:
		return name + " was removed"
	}
	return name + " was changed"
}

// diffMaps describes the keys whose values differ, in alphabetical order.
func diffMaps(was, is map[string]string, describe func(key, was, is string) string) []string {
	keys := maps.Clone(was)
	if keys == nil {
		keys = map[string]string{}
	}
	maps.Copy(keys, is)
	var all []string
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if was[k] != is[k] {
			all = append(all, describe(k, was[k], is[k]))
		}
	}
	return all
}
