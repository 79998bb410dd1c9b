package loader

import (
	"errors"
	"io"
	"slices"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/tokenizer/tokenfile"
	"github.com/qtype-dev/qtype/spec"
)

// maxTokenizer limits the size of a tokenizer that Options.Open returns.
const maxTokenizer = 64 << 20

// decodeTokenizer decodes the name of an encoding or the path of a tokenizer's file,
// which it reads, so that an error is reported before the document runs.
func (d *decoder) decodeTokenizer(n *node, to *spec.Tokenizer, at target) {
	switch {
	case n.kind != text:
		d.diags.add(d.wrongKind(n, at, "the name of an encoding or the path of a file"))
	case n.unset:
	case slices.Contains(spec.Encodings(), n.text):
		to.Encoding = n.text
	case !tokenfile.IsPath(n.text):
		found := ruleChoice.At(n.span, "%s cannot be %q", at, n.shown())
		if found = found.WithNearest(n.text, spec.Encodings()); found.Suggestion == "" {
			found = found.WithHint("%s, or the path of a tokenizer.json or a SentencePiece .model file", oneOf(spec.Encodings()))
		}
		d.diags.add(found)
	default:
		path, problem := d.tokenizerFile(n)
		if problem != "" {
			n.markInvalid()
			d.diags.add(ruleTokenizer.At(n.span, "cannot count tokens with %q: %s", remotefs.Redacted(n.shown()), problem))
			return
		}
		to.File = path
	}
}

// tokenizerFile returns the path of the file that a key names, or why it cannot be
// used. It may read the files that an include may, except remote ones.
func (d *decoder) tokenizerFile(n *node) (path, problem string) {
	b := d.builders[n.span.File]
	if b == nil || b.noIncludes {
		return "", "this document may not read files"
	}
	path = resolve(b.path, n.text)
	if _, remote := remotefs.Remote(path); remote {
		return "", "a tokenizer must be a local file"
	}
	in, err := b.open(path, b.baseAddress())
	if err != nil {
		return "", "the file " + asReadError(err).text
	}
	defer in.Close()
	if b.opts.Open != nil {
		_, err = parseTokenizer(in)
	} else {
		_, err = tokenfile.Load(path)
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause // without the path
	}
	if err != nil {
		return "", err.Error()
	}
	return path, ""
}

// parseTokenizer reads a tokenizer that is not in a file of the operating system.
func parseTokenizer(in io.Reader) (*tokenfile.Tokenizer, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxTokenizer))
	if err != nil {
		return nil, err
	}
	return tokenfile.Parse(data)
}
