package batch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/terminal"
)

const document = `id: app
flows:
  - id: sum
    variables: [{id: name, type: text}, {id: age, type: int}, {id: tags, type: 'list[text]?'}]
    inputs: [name, age, tags]
    outputs: [name, age, tags]
    steps: [{type: Echo, id: repeat, inputs: [name, age, tags], outputs: [name, age, tags]}]
`

// run runs the flow in a new directory with the files.
func run(t *testing.T, files map[string]string, stdin string, cfg batch.Config) (out, errs string, err error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if files["app.qtype.yaml"] == "" {
		files["app.qtype.yaml"] = document
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	app, err := qtype.Open(t.Context(), "app.qtype.yaml", qtype.WithEphemeral())
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close(context.Background())
	var stdout, stderr strings.Builder
	cfg.Streams = &terminal.Streams{In: strings.NewReader(stdin), Out: &stdout, Err: &stderr, Width: 80}
	err = batch.Run(t.Context(), app, cfg)
	return stdout.String(), stderr.String(), err
}

func TestRun_File(t *testing.T) {
	rows := "name,age,tags\nAda,36,\"[\"\"x\"\"]\"\nBob,old,\nEve,7,\n"
	files := map[string]string{"in.csv": rows}
	_, errs, err := run(t, files, "", batch.Config{InputFile: "in.csv", Output: "out.jsonl", ErrorFile: "failed.csv"})
	if !errors.Is(err, batch.ErrRowsFailed) {
		t.Fatalf("got %v", err)
	}
	for file, want := range map[string]string{
		"out.jsonl": `{"row":1,"name":"Ada","age":36,"tags":["x"],"error":null}
{"row":2,"name":"Bob","age":null,"tags":null,"error":"input age: expected int, got \"old\""}
{"row":3,"name":"Eve","age":7,"tags":null,"error":null}
`,
		"failed.csv": "name,age,tags,error,error_step,error_code\nBob,old,,\"input age: expected int, got \"\"old\"\"\",,input\n",
	} {
		got, _ := os.ReadFile(file)
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s:\n%s", file, diff)
		}
	}
	for _, want := range []string{"app · flow sum · 3 rows from in.csv\n", "3 rows: 2 done, 1 failed (input age:", "failed rows: written to failed.csv, run again with -I failed.csv\n"} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %q in\n%s", want, errs)
		}
	}
}

// Rows from standard input are run like those of a file.
func TestRun_StandardInput(t *testing.T) {
	for stdin, want := range map[string]string{
		"name,age\nAda,36\nEve,7\n":                                     "Ada 36, Eve 7",
		"{\"name\":\"Ada\",\"age\":36}\n\n{\"name\":\"Eve\",\"age\":7}": "Ada 36, Eve 7",
		"[{\"name\":\"Ada\",\"age\":36}]":                               "Ada 36",
		"name,size\nAda,36\n":                                           `standard input: no column "age", which flow sum needs as its input; the columns are: name, size`,
		"":                                                              "standard input: the file is empty",
	} {
		out, errs, err := run(t, map[string]string{}, stdin, batch.Config{InputFile: "-", Format: "csv"})
		var got string
		if err != nil {
			got = err.Error()
		} else {
			var rows []string
			for _, line := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
				cells := strings.Split(line, ",")
				rows = append(rows, cells[1]+" "+cells[2])
			}
			got = strings.Join(rows, ", ")
		}
		if got != want {
			t.Errorf("%.30q: got %s, want %s", stdin, got, want)
		}
		if err == nil && !strings.Contains(errs, "rows from standard input") && !strings.Contains(errs, "row from standard input") {
			t.Errorf("%.30q: the header does not name standard input:\n%s", stdin, errs)
		}
	}
	_, _, err := run(t, map[string]string{}, "name,age\nAda,36\n", batch.Config{InputFile: "-", Output: "out.csv", Resume: true})
	if want := "--resume: standard input cannot be read again, so the run cannot be resumed"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestRun_Limits(t *testing.T) {
	rows := "name,age\n" + strings.Repeat("x,1\n", 9) + "x,old\nx,old\nx,1\n"
	out, _, err := run(t, map[string]string{"in.csv": rows}, "", batch.Config{InputFile: "in.csv", Format: "csv", Offset: 2, Limit: 3, Quiet: true})
	if want := "row,name,age,tags,error\n3,x,1,,\n4,x,1,,\n5,x,1,,\n"; out != want || err != nil {
		t.Errorf("got %q, %v", out, err)
	}
	_, _, err = run(t, map[string]string{"in.csv": rows}, "", batch.Config{InputFile: "in.csv", Output: "out.csv", MaxFailures: 2, Quiet: true, Command: []string{"run", "my app", "--restart"}})
	want := `2 rows failed, the last because input age: expected int, got "old": out.csv was not written: `
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "continue with: qtype run 'my app' --resume") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat("out.csv"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the output exists: %v", err)
	}
}

func TestRun_Value(t *testing.T) {
	one := `{"row":1,"name":"Ada","age":36,"tags":null,"error":null}` + "\n"
	tests := map[string]struct{ input, stdin, want, wantErr string }{
		"object":         {`{"name": "Ada", "age": 36}`, "", one, ""},
		"array":          {`[{"name": "Ada", "age": 36}, {"name": "Bob", "age": 7}]`, "", one + `{"row":2,"name":"Bob","age":7,"tags":null,"error":null}` + "\n", ""},
		"standard input": {"-", "\xef\xbb\xbf{\"name\": \"Ada\", \"age\": 36}", one, ""},
		"file":           {"@in.json", "", one, ""},
		"no file":        {"@none.json", "", "", "-i @none.json: no such file"},
		"directory":      {"@.", "", "", "-i @.: is a directory, not a file"},
		"unknown key":    {`{"nam": "Ada", "age": 36}`, "", "", `-i: flow sum has no input "nam"; there are: name, age, tags; did you mean "name"?`},
		"not JSON":       {`{"name": `, "", "", "-i: not valid JSON: it ends before it is complete"},
		"two values":     {`{"name": "a", "age": 1} 2`, "", "", "-i: not valid JSON: unexpected text after the first value; pass several rows as an array"},
		"scalar":         {"7", "", "", `-i: expected a JSON object with the flow's inputs: {"name": …, "age": …, "tags": …}`},
		"text":           {"hi", "", "", `-i: flow sum has 3 inputs, so "hi" is not enough: pass a JSON object, such as {"name": …, "age": …, "tags": …}`},
		"no object":      {"[1]", "", "", "-i: item 1 of the array is not an object: a row is an object with the flow's inputs"},
		"none":           {"", "", "", "flow sum needs input: name (text), age (int); pass -i JSON, or rows with -I FILE"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out, _, err := run(t, map[string]string{"in.json": `{"name": "Ada", "age": 36}`}, tc.stdin, batch.Config{Input: tc.input, Quiet: true})
			if out != tc.want {
				t.Errorf("got %s, want %s", out, tc.want)
			}
			if (err == nil) != (tc.wantErr == "") || err != nil && err.Error() != tc.wantErr {
				t.Errorf("got %v, want %s", err, tc.wantErr)
			}
			var input *terminal.UsageError
			if isInput := errors.As(err, &input); isInput != (tc.wantErr != "" && !strings.HasPrefix(tc.input, "@")) {
				t.Errorf("%v: is a UsageError: %v", err, isInput)
			}
		})
	}
}

func TestRun_Sessions(t *testing.T) {
	rows := `{"name":"a","age":1,"session":"s-1"}` + "\n" + `{"name":"b","age":2}` + "\n"
	files := map[string]string{"in.jsonl": rows}
	out, _, err := run(t, files, "", batch.Config{InputFile: "in.jsonl", SessionColumn: "session", Quiet: true})
	want := `{"row":1,"session":"s-1","name":"a","age":1,"tags":null,"error":null}
{"row":2,"session":"default","name":null,"age":null,"tags":null,"error":"the row has no \"session\", the column of its session"}
`
	if diff := cmp.Diff(want, out); diff != "" || !errors.Is(err, batch.ErrRowsFailed) {
		t.Errorf("%v\n%s", err, diff)
	}
	_, _, err = run(t, map[string]string{"in.csv": "name,age\na,1\n"}, "", batch.Config{InputFile: "in.csv", SessionColumn: "nam"})
	if want := `in.csv: no column "nam" for the sessions; the columns are: name, age; did you mean "name"?`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	_, _, err = run(t, map[string]string{"in.csv": "name\na\n"}, "", batch.Config{InputFile: "in.csv"})
	if want := `in.csv: no column "age", which flow sum needs as its input; the columns are: name`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestRun_DamagedInput(t *testing.T) {
	_, errs, err := run(t, map[string]string{"in.csv": "name,age\na,1\nb,\"2\n"}, "", batch.Config{InputFile: "in.csv", Output: filepath.Join(t.TempDir(), "out.csv")})
	if err == nil || !strings.Contains(err.Error(), "in.csv:3: unclosed quote; the table option quote=none reads quotes as text: ") || !strings.HasSuffix(err.Error(), "out.csv was not written") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(errs, "1 row: 1 done in ") {
		t.Errorf("no summary: %s", errs)
	}
}
