package tool

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// request is what a call sends.
type request struct {
	url         *url.URL
	header      http.Header // of arguments
	body        []byte
	contentType string // of the body; empty for none
}

// name returns the name by which the server knows an argument.
func (a *api) name(v *spec.Variable) string { return a.declared.ArgumentName(v) }

// request returns the request of a call. Optional fields of records that are null are
// left out.
func (a *api) request(args map[string]any) (*request, error) {
	for _, v := range a.info.Inputs {
		if given, ok := args[v.ID]; ok {
			args[v.ID] = withoutUnset(v.Type, given)
		}
	}
	u, err := a.address(args)
	if err != nil {
		return nil, err
	}
	r := &request{url: u, header: http.Header{}}
	for _, v := range a.declared.HeaderParameters {
		written, err := texts(args[v.ID])
		value := strings.Join(written, ",")
		switch {
		case err != nil:
			return nil, &pathArgumentError{v.ID, err.Error()}
		case len(written) == 0:
			continue
		case !isSendable(a.name(v), value):
			return nil, &pathArgumentError{v.ID, "contains a character that is not allowed in a header"}
		}
		r.header.Set(a.name(v), value)
	}
	r.body, r.contentType, err = a.payload(args)
	return r, err
}

// withoutUnset returns a value without the optional fields of records that are null.
func withoutUnset(t spec.Type, v any) any {
	if record, ok := v.(*value.Record); ok {
		v = value.ToGo(record)
	}
	switch v := v.(type) {
	case []any:
		if t.Elem == nil {
			return v
		}
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = withoutUnset(*t.Elem, item)
		}
		return out
	case map[string]any:
		if t.Custom == nil {
			return v
		}
		out := map[string]any{}
		for name, field := range v {
			out[name] = field
		}
		for _, p := range t.Custom.Properties {
			field, given := out[p.Name]
			switch {
			case given && field == nil && p.Type.Optional:
				delete(out, p.Name)
			case given:
				out[p.Name] = withoutUnset(p.Type, field)
			}
		}
		return out
	}
	return v
}

// address returns the URL of a call, with the arguments of the path and the query.
func (a *api) address(args map[string]any) (*url.URL, error) {
	u, err := a.endpoint.fill(func(name string) (string, error) {
		written, err := texts(args[name])
		if err != nil {
			return "", &pathArgumentError{name, err.Error()}
		}
		return strings.Join(written, ","), nil
	})
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	for _, v := range a.query {
		pairs, err := a.formPairs(a.name(v), args[v.ID])
		if err != nil {
			return nil, &pathArgumentError{v.ID, err.Error()}
		}
		for _, p := range pairs {
			query.Add(p.name, p.text)
		}
	}
	if len(query) > 0 {
		if u.RawQuery != "" {
			u.RawQuery += "&"
		}
		u.RawQuery += query.Encode()
	}
	return u, nil
}

// payload returns the body of a call and its type. Both are empty for a method without a
// body, and if the optional input that is the whole body is not given.
func (a *api) payload(args map[string]any) (body []byte, contentType string, err error) {
	if !a.hasBody {
		return nil, "", nil
	}
	whole, given := args[a.declared.Body]
	switch {
	case a.declared.Body != "" && !given:
		return nil, "", nil
	case a.declared.BodyFormat == spec.BodyForm:
		body, err = a.formBody(args)
		return body, "application/x-www-form-urlencoded", err
	case a.declared.BodyFormat == spec.BodyMultipart:
		return a.multipartBody(args)
	case a.declared.BodyFormat == spec.BodyRaw:
		return a.rawBody(whole)
	case a.declared.Body == "":
		fields := map[string]any{}
		for _, v := range a.body {
			if value, ok := args[v.ID]; ok {
				fields[a.name(v)] = value
			}
		}
		whole = fields
	}
	if body, err = writeJSON(whole); err != nil {
		return nil, "", &pathArgumentError{strings.Join(ids(a.body), ", "), err.Error()}
	}
	return body, "application/json", nil
}

// rawBody returns the text or the bytes of an argument as the body.
func (a *api) rawBody(whole any) ([]byte, string, error) {
	v := a.body[0]
	if v.Type.IsMedia() {
		raw, err := fileBytes(whole)
		return raw, "application/octet-stream", a.inArgument(v, err)
	}
	written, err := text(whole)
	return []byte(written), "text/plain; charset=utf-8", a.inArgument(v, err)
}

// inArgument adds the argument to an error, nil for none.
func (a *api) inArgument(v *spec.Variable, err error) error {
	if err == nil {
		return nil
	}
	return &pathArgumentError{v.ID, err.Error()}
}

// fileBytes returns the content of a file. Models write it as base64.
func fileBytes(v any) ([]byte, error) {
	switch v := v.(type) {
	case []byte:
		return v, nil
	case string:
		if raw, err := base64.StdEncoding.DecodeString(v); err == nil {
			return raw, nil
		}
		return []byte(v), nil
	}
	return nil, fmt.Errorf("must be a file, not %s", value.Describe(v))
}

func ids(vars []*spec.Variable) []string {
	list := make([]string, len(vars))
	for i, v := range vars {
		list[i] = v.ID
	}
	return list
}
