package lint

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/source"
)

// Formatter changes the layout of a YAML document, and nothing else.
type Formatter func(text string) (string, error)

// byteOrderMark may precede a text, and is kept.
const byteOrderMark = "\ufeff"

// Reformat formats the documents of the finder. It returns the changed documents, without
// writing them, and an error for each file that cannot be read or formatted. Secrets of the
// changes are known, so that Diff hides them. Markdown pages and URLs are errors.
func Reformat(ctx context.Context, find Finder, format Formatter) (changes []Change, failed []error, err error) {
	documents, err := find.Find(ctx)
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for _, d := range documents {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		real := realPath(d.Path)
		if seen[real] {
			continue
		}
		seen[real] = true
		c, err := reformatFile(ctx, d, real, format)
		switch {
		case err != nil:
			failed = append(failed, err)
		case c != nil:
			changes = append(changes, *c)
		}
	}
	return changes, failed, nil
}

// reformatFile formats one file; the change is nil if it is formatted already.
func reformatFile(ctx context.Context, d Document, real string, format Formatter) (*Change, error) {
	switch {
	case isRemote(d.Path):
		return nil, fmt.Errorf("%s is not a local file: only local files are formatted", remotefs.Redacted(d.Path))
	case isPage(d.Path):
		return nil, fmt.Errorf("%s is a Markdown page: only YAML files are formatted", d.Path)
	}
	text, err := os.ReadFile(real)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Path, cause(err))
	}
	made, err := FormatText(d.Path, text, format)
	if err != nil || bytes.Equal(made, text) {
		return nil, err
	}
	c := &Change{Path: d.Path, real: real, old: text, new: made}
	c.oldHidden, c.newHidden = secretsOf(ctx, d.Path, text), secretsOf(ctx, d.Path, made)
	return c, nil
}

// FormatText formats the text of a document, which errors name.
func FormatText(name string, text []byte, format Formatter) ([]byte, error) {
	rest, marked := strings.CutPrefix(string(text), byteOrderMark)
	made, err := format(rest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if marked {
		made = byteOrderMark + made
	}
	return []byte(made), nil
}

// NewChange is the change of a text that is in no file, such as standard input; only its
// Diff can be used.
func NewChange(ctx context.Context, name string, before, after []byte) Change {
	return Change{Path: name, old: before, new: after, oldHidden: secretsOf(ctx, name, before), newHidden: secretsOf(ctx, name, after)}
}

// secretsOf returns the positions of the secrets of a document. Includes are not read.
func secretsOf(ctx context.Context, name string, text []byte) []source.Span {
	var hidden []source.Span
	loaded, _ := loader.LoadBytes(ctx, name, text, loader.Options{NoDotEnv: true})
	for _, f := range loaded.Files {
		if f.Path == name {
			hidden = append(hidden, f.Hidden()...)
		}
	}
	return hidden
}
