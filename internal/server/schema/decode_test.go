package schema_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

func record(t *testing.T, text string) *value.Record {
	t.Helper()
	body, err := schema.ParseBody([]byte(text))
	testkit.Must(t, err)
	r, ok := body.(*value.Record)
	if !ok {
		t.Fatalf("%s is not an object", text)
	}
	return r
}

// Each wrong field is reported with the JSON pointer of the value.
func TestDecode_Pointers(t *testing.T) {
	for _, tt := range []struct{ decl, body, pointer, detail string }{
		{"a: int", `{}`, "/3/a", "the input is missing: expected int"},
		{"a: int", `{"a": null}`, "/3/a", "null"},
		{"a: int", `{"a": "1"}`, "/3/a", "expected a number"},
		{"a: int", `{"a": 1.5}`, "/3/a", ""},
		{"a: boolean", `{"a": 1}`, "/3/a", "expected true or false"},
		{"a: text", `{"a": 1}`, "/3/a", ""},
		{"a/b: int", `{"a/b": "x"}`, "/3/a~1b", "expected a number"},
		{"a~b: int", `{"a~b": "x"}`, "/3/a~0b", "expected a number"},
		{"a: list[int]", `{"a": [1, "x"]}`, "/3/a/1", "expected a number"},
		{"a: list[int]", `{"a": 1}`, "/3/a", "expected a list"},
		{"a: Item", `{"a": []}`, "/3/a", "expected an object of type Item"},
		{"a: Item", `{"a": {"name": "n"}}`, "/3/a", "tags"},
		{"a: list[Item]", `{"a": [{"name": "n", "tags": [], "part": {"name": "m", "tags": [true]}}]}`, "/3/a/0/part/tags/0", ""},
		{"a: list[Item]", `{"a": [{"name": "n", "tags": [], "photo": {"base64": "!"}}]}`, "/3/a/0/photo/base64", "not valid base64"},
		{"a: bytes", `{"a": {"base64": 7}}`, "/3/a/base64", "expected base64"},
		{"a: bytes", `{"a": {"other": ""}}`, "/3/a", "expected bytes"},
		{"a: bytes", `{"a": 7}`, "/3/a", "expected bytes"},
		{"a: date", `{"a": "yesterday"}`, "/3/a", ""},
		{"a: ChatMessage", `{"a": 7}`, "/3/a", ""},
	} {
		_, wrong := contract(t, tt.decl).Decode(record(t, tt.body), "/3", nil)
		if len(wrong) != 1 || !strings.HasPrefix(wrong[0].Pointer, tt.pointer) || !strings.Contains(wrong[0].Detail+wrong[0].Pointer, tt.detail) || strings.Contains(wrong[0].Detail, "\n") {
			t.Errorf("%s %s: %+v", tt.decl, tt.body, wrong)
		}
	}
}

func TestDecode_Optional(t *testing.T) {
	f := contract(t, "a: int?", "b: text", "c: ChatMessage")
	has := func(v *spec.Variable) bool { return v.ID == "b" }
	got, wrong := f.Decode(record(t, `{"a": null, "c": "Hello", "other": 1}`), "", has)
	m, _ := got["c"].(chat.Message)
	if _, b := got["b"]; len(wrong) > 0 || b || m.Text() != "Hello" || m.Role != chat.User {
		t.Errorf("%v, %v", got, wrong)
	}
}

func TestRows(t *testing.T) {
	f := contract(t, "a: int")
	for _, tt := range []struct {
		body    string
		rows    int
		pointer string
	}{
		{`{"a": 1}`, 1, ""}, {`[{"a": 1}, {}]`, 2, ""}, {`[]`, 0, ""}, {`{"rows": [{}, {}, {}]}`, 3, ""}, {`{"rows": 1}`, 1, ""}, {`{"rows": [], "a": 1}`, 1, ""},
		{`[{}, 7]`, -1, "/1"}, {`{"rows": [null]}`, -1, "/rows/0"}, {`"a"`, -1, ""}, {`null`, -1, ""},
	} {
		body, err := schema.ParseBody([]byte(tt.body))
		testkit.Must(t, err)
		rows, err := f.Rows(body)
		if p := problem.Of(err); (p != nil) != (tt.rows < 0) || p == nil && len(rows) != tt.rows || p != nil && len(p.Errors) > 0 && p.Errors[0].Pointer != tt.pointer {
			t.Errorf("%s: %d rows, %v", tt.body, len(rows), err)
		}
	}
	if rows, err := contract(t, "rows: list[Item]").Rows(record(t, `{"rows": []}`)); len(rows) != 1 || err != nil {
		t.Errorf("an input named rows: %v, %v", rows, err)
	}
	if _, err := schema.ParseBody([]byte("{\n  \"a\": }")); problem.Of(err) == nil || !strings.HasPrefix(err.Error(), "line 2, column 8") {
		t.Errorf("malformed JSON: %v", err)
	}
}

func TestDecodeForm(t *testing.T) {
	f := contract(t, "n: int", "tags: list[text]?", "files: list[bytes]?", "item: Item?", "m: ChatMessage?", "b: bytes?")
	fields := map[string][]string{"n": {"7"}, "tags": {"x", "y"}, "item": {`{"name": "n", "tags": []}`}, "m": {"Hello"}}
	files := map[string][][]byte{"files": {[]byte("one")}, "b": {{0xff}}}
	got, wrong := f.DecodeForm(fields, files, nil)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	var values []any
	for _, v := range f.Inputs {
		values = append(values, got[v.ID])
	}
	text := string(f.AppendOutputs(nil, values))
	for _, want := range []string{`"n":7,`, `"tags":["x","y"]`, `"files":["one"]`, `"name":"n"`, `"content":"Hello"`, `"b":{"base64":"/w=="}`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	_, wrong = f.DecodeForm(map[string][]string{"tags": {"x"}, "item": {"{"}}, nil, nil)
	if len(wrong) != 2 && len(wrong) != 3 || wrong[0].Pointer != "/n" {
		t.Errorf("wrong fields: %v", wrong)
	}
}

func TestDecodeMedia(t *testing.T) {
	for text, want := range map[string]string{
		`"plain"`: "plain", `"data:text/plain,a%20b"`: "a b", `"data:image/png;base64,aGk="`: "hi", `{"base64": "aGk="}`: "hi",
		`{"bytes_base64": "aGk=", "mime": "a/b"}`: "hi", `"{\"bytes_base64\": \"aGk=\"}"`: "hi", `"{not JSON"`: "{not JSON", `"{\"a\": 1}"`: `{"a": 1}`, `""`: "",
		`"data:no comma"`: "error", `"data:x;base64,!"`: "error", `"data:,%zz"`: "error", `{"base64": null}`: "error", `{}`: "error", `[1]`: "error", `true`: "error",
	} {
		raw, err := schema.ParseBody([]byte(text))
		testkit.Must(t, err)
		got, err := schema.DecodeMedia(raw)
		data, _ := got.([]byte)
		if (err != nil) != (want == "error") || err == nil && string(data) != want {
			t.Errorf("%s: %q, %v", text, data, err)
		}
	}
}

func TestPrompt(t *testing.T) {
	f := contract(t, "style: text", "topic: text")
	for body, want := range map[string]string{
		`{"prompt": "p"}`:                             `{"prompt":"p","style":"p"}`,
		`{"style": "s", "prompt": "p"}`:               `{"style":"s","prompt":"p","topic":"p"}`,
		`{"style": "s", "topic": "t", "prompt": "p"}`: `{"style":"s","topic":"t","prompt":"p"}`,
		`{"style": "s"}`:                              `{"style":"s"}`,
	} {
		if got := string(value.JSON(f.Prompt(record(t, body)))); got != want {
			t.Errorf("%s: %s", body, got)
		}
	}
	if got := string(value.JSON(contract(t, "prompt: text", "x: text").Prompt(record(t, `{"prompt": "p"}`)))); got != `{"prompt":"p"}` {
		t.Errorf("an input named prompt: %s", got)
	}
}
