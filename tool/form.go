package tool

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/spec"
)

// formPair is a field of a form or of a query.
type formPair struct{ name, text string }

// formPairs returns the fields that an argument becomes, none for null.
func (a *api) formPairs(name string, v any) ([]formPair, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		return a.listPairs(name, v)
	case map[string]any:
		if a.declared.RecordFormat != "brackets" {
			break
		}
		var all []formPair
		for _, key := range slices.Sorted(maps.Keys(v)) {
			pairs, err := a.formPairs(name+"["+key+"]", v[key])
			if err != nil {
				return nil, err
			}
			all = append(all, pairs...)
		}
		return all, nil
	}
	written, err := text(v)
	return []formPair{{name, written}}, err
}

// listPairs returns the fields that a list becomes.
func (a *api) listPairs(name string, list []any) ([]formPair, error) {
	format := a.declared.ListFormat
	var all []formPair
	for i, item := range list {
		of := name
		switch format {
		case "brackets":
			of += "[]"
		case "indices":
			of = fmt.Sprintf("%s[%d]", name, i)
		}
		pairs, err := a.formPairs(of, item)
		if err != nil {
			return nil, err
		}
		all = append(all, pairs...)
	}
	if format != "comma" || len(all) == 0 {
		return all, nil
	}
	var joined []string
	for _, p := range all {
		joined = append(joined, p.text)
	}
	return []formPair{{name, strings.Join(joined, ",")}}, nil
}

// formBody returns the arguments as application/x-www-form-urlencoded.
func (a *api) formBody(args map[string]any) ([]byte, error) {
	var parts []string
	for _, v := range a.body {
		pairs, err := a.formPairs(a.name(v), args[v.ID])
		if err != nil {
			return nil, a.inArgument(v, err)
		}
		for _, p := range pairs {
			parts = append(parts, url.QueryEscape(p.name)+"="+url.QueryEscape(p.text))
		}
	}
	return []byte(strings.Join(parts, "&")), nil
}

// multipartBody returns the arguments as multipart/form-data, and its media type. The
// boundary is a digest of the content, so that equal calls send equal requests.
func (a *api) multipartBody(args map[string]any) ([]byte, string, error) {
	digest := sha256.New()
	write := func(boundary string) ([]byte, string, error) {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		if boundary != "" {
			if err := w.SetBoundary(boundary); err != nil {
				return nil, "", err
			}
		}
		for _, v := range a.body {
			if err := a.inArgument(v, a.writePart(w, v, args[v.ID])); err != nil {
				return nil, "", err
			}
		}
		err := w.Close()
		return b.Bytes(), w.FormDataContentType(), err
	}
	draft, _, err := write(strings.Repeat("-", 16))
	if err != nil {
		return nil, "", err
	}
	digest.Write(draft)
	return write(hex.EncodeToString(digest.Sum(nil))[:40])
}

// writePart writes an argument: files with a name and a type, anything else as text.
func (a *api) writePart(w *multipart.Writer, v *spec.Variable, arg any) error {
	of := v.Type
	list, isList := arg.([]any)
	if of.IsList() {
		of = *of.Elem
	}
	if !of.IsMedia() {
		pairs, err := a.formPairs(a.name(v), arg)
		for _, p := range pairs {
			if err == nil {
				err = w.WriteField(p.name, p.text)
			}
		}
		return err
	}
	if !isList {
		list = []any{arg}
	}
	for _, file := range list {
		if file == nil {
			continue
		}
		content, err := fileBytes(file)
		if err != nil {
			return err
		}
		if err := writeFile(w, a.name(v), content); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file, whose name is that of the field.
func writeFile(w *multipart.Writer, name string, content []byte) error {
	head := textproto.MIMEHeader{}
	head.Set("Content-Disposition", multipart.FileContentDisposition(name, name))
	head.Set("Content-Type", http.DetectContentType(content))
	part, err := w.CreatePart(head)
	if err != nil {
		return err
	}
	_, err = part.Write(content)
	return err
}

// texts formats a value for a path or a query: true and false, dates as ISO 8601, bytes
// as base64, records as JSON. A list has a text for each item, null none.
func texts(v any) ([]string, error) {
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	var written []string
	for _, item := range list {
		if item == nil {
			continue
		}
		t, err := text(item)
		if err != nil {
			return nil, err
		}
		written = append(written, t)
	}
	return written, nil
}

// text formats one value; a JSON string is written without quotes.
func text(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case []byte:
		return base64.StdEncoding.EncodeToString(v), nil
	case time.Time:
		return v.Format(time.RFC3339Nano), nil
	}
	raw, err := writeJSON(v)
	if err != nil {
		return "", err
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, nil
	}
	return string(raw), nil
}

func writeJSON(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot be encoded as JSON")
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}

// ValidateArgs returns the arguments without optional ones that are null. Unknown and
// missing arguments are an *ArgumentError.
func (i Info) ValidateArgs(args map[string]any) (map[string]any, error) {
	given := make(map[string]any, len(args))
	for _, v := range i.Inputs {
		value, ok := args[v.ID]
		switch {
		case !ok && v.IsOptional(), ok && value == nil && v.IsOptional():
			continue
		case !ok:
			return nil, &ArgumentError{i.ID, v.ID, "is missing"}
		}
		given[v.ID] = value
	}
	for _, name := range slices.Sorted(maps.Keys(args)) { // sorted, so that the error is always the same
		if !i.declares(name) {
			return nil, &ArgumentError{i.ID, name, "is not an argument of this tool"}
		}
	}
	return given, nil
}

func (i Info) declares(name string) bool {
	return slices.ContainsFunc(i.Inputs, func(v *spec.Variable) bool { return v.ID == name })
}
