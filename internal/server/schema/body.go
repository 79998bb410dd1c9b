package schema

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/internal/server/problem"
)

// kinds are the names of Go's kinds for clients.
var kinds = map[string]string{"bool": "true or false", "string": "a text", "int": "a whole number", "int64": "a whole number", "float64": "a number"}

// DecodeBody decodes a JSON body that is an object. With strict, members that to does not
// have are errors. The error is a *problem.Problem that names the field.
func DecodeBody(body []byte, to any, strict bool) error {
	if _, err := ParseBody(body); err != nil {
		return err
	}
	d := json.NewDecoder(strings.NewReader(string(body)))
	if strict {
		d.DisallowUnknownFields()
	}
	err := d.Decode(to)
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return wrongType(wrong)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return Invalid([]problem.Field{{Pointer: "/" + escape(strings.Trim(name, `"`)), Detail: "there is no such field"}})
	}
	return problem.New(http.StatusUnprocessableEntity, "invalid_request", "the body has not the expected form")
}

// wrongType returns the problem of a member that has another type.
func wrongType(e *json.UnmarshalTypeError) error {
	if e.Field == "" {
		return problem.New(http.StatusUnprocessableEntity, "invalid_request", "the body must be a JSON object")
	}
	want := kinds[e.Type.Kind().String()]
	switch {
	case want != "":
	case e.Type.Kind().String() == "slice":
		want = "a list"
	default:
		want = "an object"
	}
	return Invalid([]problem.Field{{Pointer: "/" + strings.ReplaceAll(e.Field, ".", "/"), Detail: "expected " + want}})
}
