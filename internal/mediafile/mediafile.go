// Package mediafile reads the images, sounds and files of inputs: a value of a type of
// media is the content itself, as bytes, a data URL or base64, or the path or the address
// of a file. What it reads is checked by its content.
package mediafile

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/qtype-dev/qtype/internal/mediatype"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// Source is where the files are that inputs name. It is safe for concurrent use.
type Source struct {
	// Base is the path or the address of the file whose rows name files; relative names
	// are in its folder. Empty: inputs must not name files.
	Base string
	// AnyFile lets inputs name all files of this computer; otherwise those in the folder of Base
	// and below it.
	AnyFile bool
	// HTTP sends requests; nil means a client that connects to public addresses only.
	HTTP *http.Client
}

// CurrentFolder is the Base of rows that are not from a file.
const CurrentFolder = "./"

// BaseOf returns the Base of the rows of a file: the current folder for standard input and
// for a pipe.
func BaseOf(path string) string {
	if _, remote := remotefs.Remote(path); remote {
		return path
	}
	info, err := os.Stat(remotefs.Path(path))
	if path == "-" || err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return CurrentFolder
	}
	return path
}

// Has reports whether values of a type have media: the type itself, the items of a list, or
// a field of a custom type.
func Has(t spec.Type) bool { return has(t, map[*spec.CustomType]bool{}) }

func has(t spec.Type, seen map[*spec.CustomType]bool) bool {
	switch {
	case t.Elem != nil:
		return has(*t.Elem, seen)
	case t.Custom != nil && !seen[t.Custom]:
		seen[t.Custom] = true
		for _, p := range t.Custom.Properties {
			if has(p.Type, seen) {
				return true
			}
		}
	}
	return t.IsMedia() || t.Is("ChatMessage")
}

// Load returns a value of a type with the content of all its media. Values that do not fit
// the type are returned as they are: package value reports them. The error is a
// *value.Error.
func (s *Source) Load(ctx context.Context, t spec.Type, raw any) (any, error) {
	switch {
	case raw == nil:
		return nil, nil
	case t.Elem != nil:
		return s.list(ctx, *t.Elem, raw)
	case t.Custom != nil:
		return s.record(ctx, t.Custom, raw)
	case t.Is("ChatMessage"):
		return s.message(ctx, t, parsed(raw, "{"))
	case !t.IsMedia():
		return raw, nil
	}
	data, err := s.media(ctx, t, raw)
	if err != nil {
		return nil, &value.Error{Reason: err.Error()}
	}
	return data, nil
}

// parsed returns the value of a cell that begins as JSON does, otherwise raw.
func parsed(raw any, start string) any {
	cell, ok := raw.(value.ParseCell)
	text := strings.TrimSpace(string(cell))
	if !ok || !strings.HasPrefix(text, start) {
		return raw
	}
	if v, err := value.Parse(text); err == nil {
		return v
	}
	return raw
}

func (s *Source) list(ctx context.Context, elem spec.Type, raw any) (any, error) {
	items, ok := parsed(raw, "[").([]any)
	if !ok {
		return raw, nil
	}
	all := make([]any, len(items))
	for i, item := range items {
		x, err := s.Load(ctx, elem, item)
		if err != nil {
			return nil, within(fmt.Sprintf("[%d]", i), err)
		}
		all[i] = x
	}
	return all, nil
}

func (s *Source) record(ctx context.Context, t *spec.CustomType, raw any) (any, error) {
	raw = parsed(raw, "{")
	if fields, ok := raw.(map[string]any); ok {
		raw = value.FromGo(fields)
	}
	r, ok := raw.(*value.Record)
	if !ok {
		return raw, nil
	}
	for _, p := range t.Properties {
		field, ok := r.Get(p.Name)
		if !ok || !Has(p.Type) {
			continue
		}
		x, err := s.Load(ctx, p.Type, field)
		if err != nil {
			return nil, within(p.Name, err)
		}
		r = r.With(p.Name, x)
	}
	return r, nil
}

// within adds a place to the path of an error.
func within(part string, err error) error {
	if e, ok := errors.AsType[*value.Error](err); ok {
		return e.Within(part)
	}
	return err
}

// media returns the content of one value.
func (s *Source) media(ctx context.Context, t spec.Type, raw any) (any, error) {
	if fields, ok := raw.(map[string]any); ok {
		raw = value.FromGo(fields)
	}
	switch x := raw.(type) {
	case []byte:
		return checked(t.Name, x)
	case string:
		return s.text(ctx, t, x)
	case value.ParseCell:
		if r, ok := parsed(x, "{").(*value.Record); ok && isMedia(r) {
			return s.object(ctx, t, r)
		}
		return s.text(ctx, t, string(x))
	case *value.Record:
		if isMedia(x) {
			return s.object(ctx, t, x)
		}
		return nil, errors.New(`expected a path, an address, a data URL or {"base64": "…"}, got an object`)
	}
	return raw, nil
}

// isMedia reports whether an object is a form of media.
func isMedia(r *value.Record) bool {
	if r.Len() != 1 {
		return false
	}
	switch r.Names()[0] {
	case "base64", "path", "url":
		return true
	}
	return false
}

func checked(kind string, data []byte) (any, error) {
	if err := checkSize(kind, int64(len(data))); err != nil {
		return nil, err
	}
	return data, mediatype.Check(kind, data)
}

// object returns the content of {"base64": …}, {"path": …} or {"url": …}.
func (s *Source) object(ctx context.Context, t spec.Type, r *value.Record) (any, error) {
	name := r.Names()[0]
	field, _ := r.Get(name)
	text, ok := field.(string)
	if !ok {
		return nil, fmt.Errorf("%q must be a text, not %s", name, value.Describe(field))
	}
	if name != "base64" {
		return s.open(ctx, t.Name, text)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("it is not valid base64")
	}
	return checked(t.Name, data)
}

// text returns the content that a text names, encodes or is.
func (s *Source) text(ctx context.Context, t spec.Type, text string) (any, error) {
	if strings.HasPrefix(text, "data:") {
		if data, err := DecodeDataURL(text); err == nil {
			return checked(t.Name, data)
		} else if t.Name != "file" && t.Name != "bytes" {
			return nil, err
		}
	}
	switch {
	case t.Name == "bytes", t.Name == "file" && !s.names(text):
		return checked(t.Name, []byte(text))
	case t.Name == "file":
		return s.open(ctx, t.Name, text)
	case strings.TrimSpace(text) == "" && t.Optional:
		return nil, nil
	}
	if data, err := base64.StdEncoding.DecodeString(text); err == nil && mediatype.KindOf(mediatype.Detect(data)) == t.Name {
		return checked(t.Name, data)
	}
	if !mediatype.MayBeFileName(text) || mediatype.Detect([]byte(text)) == mediatype.SVG {
		return checked(t.Name, []byte(text))
	}
	return s.open(ctx, t.Name, text)
}

// names reports whether a text is the name of a file and not its content.
func (s *Source) names(text string) bool {
	return s != nil && s.Base != "" && mediatype.IsFileName(text)
}

// DecodeDataURL returns the content of a data URL.
func DecodeDataURL(text string) ([]byte, error) {
	header, content, ok := strings.Cut(strings.TrimPrefix(text, "data:"), ",")
	if !ok {
		return nil, errors.New("the data URL has no comma")
	}
	if !strings.HasSuffix(header, ";base64") {
		plain, err := url.PathUnescape(content)
		return []byte(plain), err
	}
	data, err := base64.StdEncoding.DecodeString(content)
	if err != nil {
		return nil, errors.New("the data URL is not valid base64")
	}
	return data, nil
}
