package checkpoint

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The file is a first line and frames (docs/runs.md):
//
//	"qtype journal 3\n"
//	frames: length and CRC-32C of the payload (4 bytes each, little endian), payload
//	payload: kind, body
//
// The body of a header is JSON, that of a session is empty, that of a seal is the HMAC of
// what is before it, see chain. The body of results is a Key (the segment; in segment 0
// the row, else the digest), a flag byte, the number of rows, and the rows, each after
// its length.
const (
	magic     = "qtype journal "
	format    = 3       // the version of the file format; the first line ends with it
	frameHead = 8       // bytes before the payload
	maxFrame  = 1 << 30 // the longest payload in bytes
)

// The kinds of frames.
const (
	kindHeader  byte = 'H' // the first frame: what the run is of
	kindSession byte = 'S' // another process has opened the file
	kindResults byte = 'R' // results of a row
	kindSeal    byte = 'A' // authenticates the frames since the last one
)

// The bits of the flag byte of results.
const (
	flagLast   byte = 1 // the row is finished
	flagFailed byte = 2 // one of the rows has failed
)

// castagnoli is the polynomial that processors have an instruction for.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// frame returns a whole frame.
func frame(kind byte, body []byte) []byte {
	b := append(make([]byte, frameHead, frameHead+1+len(body)), kind)
	b = append(b, body...)
	fillHead(b)
	return b
}

// fillHead writes the head of a frame whose payload is complete.
func fillHead(b []byte) {
	payload := b[frameHead:]
	binary.LittleEndian.PutUint32(b, uint32(len(payload))) // at most maxFrame
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(payload, castagnoli()))
}

// appendResults appends a frame of results to b.
func appendResults(b []byte, key Key, rows []Row, last bool) ([]byte, error) {
	start := len(b)
	b = append(b, make([]byte, frameHead)...)
	b = binary.AppendUvarint(append(b, kindResults), uint64(key.Segment))
	if key.Segment == 0 {
		b = binary.AppendVarint(b, key.Row)
	} else {
		b = append(b, key.Digest[:]...)
	}
	flags := byte(0)
	if last {
		flags = flagLast
	}
	for _, row := range rows {
		if row.Failed {
			flags |= flagFailed
		}
	}
	b = binary.AppendUvarint(append(b, flags), uint64(len(rows)))
	for _, row := range rows {
		b = appendText(b, row.Data)
	}
	if len(b)-start-frameHead > maxFrame {
		return b[:start], fmt.Errorf("row results exceed the journal's limit of %d MB", maxFrame>>20)
	}
	fillHead(b[start:])
	return b, nil
}

// readKey reads what is before the rows in a body of results.
func (r *reader) readKey() (key Key, flags byte) {
	key.Segment = int(r.uvarint() & 0x7fffffff)
	if key.Segment == 0 {
		key.Row = r.varint()
	} else {
		copy(key.Digest[:], r.next(len(key.Digest)))
	}
	return key, r.byte()
}

// errTruncated reports the end of the frames: the process that wrote them was
// stopped in the middle of one, or after one.
var errTruncated = errors.New("truncated")

// frames reads one frame after the other.
type frames struct {
	in  *bufio.Reader
	at  int64 // the offset of the next frame
	buf []byte

	chain *chain // gets the bytes of frames other than seals; nil for none
}

// next returns the next frame. Its body is valid until the next call.
func (f *frames) next() (kind byte, body []byte, err error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(f.in, head[:]); err != nil {
		return 0, nil, truncated(err)
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n == 0 || n > maxFrame {
		return 0, nil, errTruncated
	}
	if f.buf, err = readN(f.in, f.buf[:0], int(n)); err != nil {
		return 0, nil, truncated(err)
	}
	if crc32.Checksum(f.buf, castagnoli()) != binary.LittleEndian.Uint32(head[4:]) {
		return 0, nil, errTruncated
	}
	f.at += frameHead + int64(n)
	if f.chain != nil && f.buf[0] != kindSeal {
		f.chain.add(head[:])
		f.chain.add(f.buf)
	}
	return f.buf[0], f.buf[1:], nil
}

// readN reads n bytes, and allocates for what is there rather than for n.
func readN(in io.Reader, buf []byte, n int) ([]byte, error) {
	for len(buf) < n {
		step := min(n-len(buf), 1<<20)
		start := len(buf)
		buf = append(buf, make([]byte, step)...)
		if _, err := io.ReadFull(in, buf[start:]); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTruncated
	}
	return err
}

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
