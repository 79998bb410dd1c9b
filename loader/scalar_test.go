package loader_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/spec"
)

// free decodes a value where any is taken.
func free(t *testing.T, written string) any {
	t.Helper()
	result, list := load(t, "- {type: Model, id: m, provider: mock, inference_params: {v: "+written+"}}")
	if len(list) > 0 {
		t.Fatalf("%s: %v", written, list)
	}
	return result.Document.Models[0].Base().InferenceParams["v"]
}

// TestScalars checks how unquoted scalars are read.
func TestScalars(t *testing.T) {
	for written, want := range map[string]any{
		"yes": true, "No": false, "ON": true, "off": false, "true": true, "False": false, "TRUE": true, "tRUE": "tRUE",
		"y": "y", "n": "n", "010": int64(8), "0o10": "0o10", "0x1F": int64(31), "1_000": int64(1000), "-0x1F": int64(-31), "0b101": int64(5), "09": "09", "-7": int64(-7), "0": int64(0),
		"1:30": "1:30", "12:30:45": "12:30:45", "1e3": "1e3", "12e03": "12e03", "1.0e+3": 1000.0, ".5": 0.5, "+1": int64(1), "1.": 1.0, "-1.5": -1.5, "1_0.5": 10.5,
		"1.5e3": "1.5e3", "1.2.3": "1.2.3", ".": ".", "+": "+", "-": "-", "1-2": "1-2", "_1": "_1",
		"2024-01-02": "2024-01-02", "2024-01-02T03:04:05Z": "2024-01-02T03:04:05Z",
		"~": nil, "null": nil, "NULL": nil, "": nil, `""`: "", "'5'": "5", `"yes"`: "yes",
		"!!str 5": "5", "!!str yes": "yes", "!!int '5'": int64(5), "!!float 1": 1.0, "!!bool 'no'": false, "!!null 'x'": nil, "!!binary aGk=": "hi", "! 5": "5",
		"99999999999999999999": 99999999999999999999.0, "[a, 1, {b: ~}]": []any{"a", int64(1), map[string]any{"b": nil}}, "!!omap [a: 1]": []any{map[string]any{"a": int64(1)}},
	} {
		if written == "-" {
			written = "'-'"
		}
		if d := cmp.Diff(want, free(t, written)); d != "" {
			t.Errorf("%s: %s", written, d)
		}
	}
}

// TestNotFinite checks that numbers that are not finite are reported once, where they are, in keys
// with a type and in free mappings.
func TestNotFinite(t *testing.T) {
	for document, want := range map[string][]string{
		"id: a\nmemories: [{id: m, chat_history_token_ratio: .nan}]":                                      {"2:46 .nan"},
		"id: a\nmemories: [{id: m, chat_history_token_ratio: \"NaN\"}]":                                   {`2:46 "NaN"`},
		"- {type: Model, id: m, provider: mock, prices: {input: .inf, cached_input: 1.0, output: -.Inf}}": {"1:56 .inf", "1:89 -.Inf"},
		"- {type: Model, id: m, provider: mock, inference_params: {a: .NaN, b: [1, {c: 1.0e+999}]}}":      {"1:62 .NaN", "1:79 1.0e+999"},
		"- {type: Model, id: m, provider: mock, inference_params: {a: &x .nan, b: *x, c: '.nan'}}":        {"1:65 .nan"},
	} {
		_, list := load(t, document)
		var got []string
		for _, d := range list {
			if d.Code != "QT108" {
				t.Error(d)
			}
			got = append(got, fmt.Sprintf("%d:%d %s", d.Span.Start.Line, d.Span.Start.Column, covered(d.Span)))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", document, d)
		}
	}
}

// TestCoercion checks the conversions of scalars.
func TestCoercion(t *testing.T) {
	for _, c := range []struct {
		field, written string
		want           any // nil where QT105 is due
	}{
		{"int", "5", 5}, {"int", "5.0", 5}, {"int", `"5"`, 5}, {"int", `" 5 "`, 5}, {"int", `"5.0"`, 5}, {"int", "yes", 1}, {"int", `"007"`, 7}, {"int", `"+5"`, 5},
		{"int", "5.5", nil}, {"int", `""`, nil}, {"int", `"1e3"`, nil}, {"int", `"0x1"`, nil}, {"int", "[5]", nil}, {"int", "99999999999999999999", nil}, {"int", ".nan", nil}, {"int", ".inf", nil}, {"int", "1:30", nil}, {"int", `"5."`, nil},
		{"float", "1", 1.0}, {"float", "0.5", 0.5}, {"float", "yes", 1.0}, {"float", `"0.5"`, 0.5}, {"float", `"1e-1"`, 0.1}, {"float", `""`, nil}, {"float", "{}", nil}, {"float", `"0x1p-2"`, nil}, {"float", "x", nil},
		{"bool", "true", true}, {"bool", "1", true}, {"bool", "0.0", false}, {"bool", `"Yes"`, true}, {"bool", `"oN"`, true}, {"bool", "y", true}, {"bool", "f", false}, {"bool", `"0"`, false}, {"bool", "2", nil}, {"bool", "maybe", nil}, {"bool", "[]", nil},
		{"string", "text", "text"}, {"string", "2024-01-02", nil}, {"string", "2024-1-2 3:04:05", nil}, {"string", "2024-01-02T03:04:05Z", nil}, {"string", `"2024-01-02"`, "2024-01-02"}, {"string", "2024-1-2", "2024-1-2"}, {"string", "2024-01-02x", "2024-01-02x"}, {"string", "1:30", "1:30"},
		{"string", "!!binary aGk=", "hi"}, {"string", "5", nil}, {"string", "yes", nil}, {"string", "1.5", nil}, {"string", "[a]", nil}, {"string", "~", ""},
		{"list", "[a]", []string{"a"}}, {"list", "[]", []string{}}, {"list", "a", nil}, {"list", "{a: b}", nil}, {"list", "[5]", nil}, {"list", "~", []string(nil)},
	} {
		result, list := load(t, map[string]string{
			"int":    "id: a\nmemories: [{id: m, token_limit: " + c.written + "}]",
			"float":  "id: a\nmemories: [{id: m, chat_history_token_ratio: " + c.written + "}]",
			"bool":   "id: a\nflows: [{id: f, variables: [{id: v, type: text, optional: " + c.written + "}]}]",
			"string": "id: a\ndescription: " + c.written,
			"list":   "id: a\nauths: [{id: o, type: oauth2, client_id: c, client_secret: s, token_url: u, scopes: " + c.written + "}]",
		}[c.field])
		if c.want == nil {
			if len(list) != 1 || list[0].Code != "QT105" {
				t.Errorf("%s %s: QT105 is due, got %v", c.field, c.written, list)
			}
			continue
		}
		app := result.Document.Application
		var got any
		switch c.field {
		case "int":
			got = app.Memories[0].TokenLimit
		case "float":
			got = app.Memories[0].ChatHistoryTokenRatio
		case "bool":
			got = app.Flows[0].Variables[0].Optional
		case "string":
			got = app.Description
		case "list":
			got = app.Auths[0].(*spec.OAuth2Auth).Scopes
		}
		if d := cmp.Diff(c.want, got); d != "" || len(list) > 0 {
			t.Errorf("%s %s: %s %v", c.field, c.written, d, list)
		}
	}
}
