// Package tokenfile counts tokens with a tokenizer that a file describes: a
// tokenizer.json of Hugging Face (BPE, WordPiece, Unigram and WordLevel), or the
// .model file of SentencePiece (BPE and Unigram).
//
// A count equals the number of ids that the Python packages tokenizers and
// sentencepiece return without the special tokens around a text: tokens that a
// tokenizer.json adds are recognized within it. Characters that are newer than Go's
// Unicode tables may differ.
package tokenfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// maxFile limits the size of a file. The largest of known models have 35 MB.
const maxFile = 256 << 20

// Tokenizer counts tokens as a file describes. It is safe for concurrent use.
type Tokenizer struct{ count func(text string) int }

// Count returns the number of tokens of text. A byte that is not UTF-8 counts as U+FFFD.
func (t *Tokenizer) Count(text string) int {
	if text == "" {
		return 0
	}
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	return t.count(text)
}

// UnsupportedError reports a part of a file that this package does not implement.
type UnsupportedError struct {
	Part string // what it is, such as "the pre-tokenizer UnicodeScripts"
}

// Error names the part.
func (e *UnsupportedError) Error() string { return e.Part + " is not supported" }

// Parse returns the tokenizer that the content of a file describes.
func Parse(data []byte) (*Tokenizer, error) {
	if trimmed := bytes.TrimLeft(data, " \t\r\n\ufeff"); len(trimmed) > 0 && trimmed[0] == '{' {
		return parseJSON(trimmed)
	}
	if len(data) == 0 {
		return nil, errors.New("the file is empty")
	}
	return parseSentencePiece(data)
}

// loaded is a file that was read, and what it was when it was read.
type loaded struct {
	size     int64
	modified time.Time
	once     sync.Once
	result   *Tokenizer
	err      error
}

// files holds the files that were read, by their absolute paths.
var files struct {
	sync.Mutex
	byPath map[string]*loaded
}

// Load returns the tokenizer of a file. It reads the file once, and again after it
// has changed.
func Load(path string) (*Tokenizer, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the tokenizer %s: %w", path, reason(err))
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("cannot read the tokenizer %s: it is not a file", path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("cannot read the tokenizer %s: it has more than %d MB", path, maxFile>>20)
	}
	f := entryOf(path, info)
	f.once.Do(func() { f.result, f.err = read(path) })
	return f.result, f.err
}

// entryOf returns the cached file of a path, or a new one if the file has changed.
func entryOf(path string, info fs.FileInfo) *loaded {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	files.Lock()
	defer files.Unlock()
	f := files.byPath[path]
	if f == nil || f.size != info.Size() || !f.modified.Equal(info.ModTime()) {
		f = &loaded{size: info.Size(), modified: info.ModTime()}
		if files.byPath == nil {
			files.byPath = map[string]*loaded{}
		}
		files.byPath[path] = f
	}
	return f
}

// read reads and parses a file.
func read(path string) (*Tokenizer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the tokenizer %s: %w", path, reason(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the tokenizer %s: %w", path, reason(err))
	}
	t, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s is not a tokenizer that qtype can use: %w", path, err)
	}
	return t, nil
}

// reason returns the cause of an error without the path.
func reason(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is no such file")
	}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// IsPath reports whether the value of the key tokenizer is the path of a file, and not
// the name of an encoding.
func IsPath(name string) bool {
	return strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".model")
}
