package batch_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// writes counts the writes to a stream that is not a regular file.
type writes struct {
	bytes.Buffer
	number int
}

func (w *writes) Write(p []byte) (int, error) {
	w.number++
	return w.Buffer.Write(p)
}

// countedFile counts the writes to a file.
type countedFile struct {
	*os.File
	number int
}

func (f *countedFile) Write(p []byte) (int, error) {
	f.number++
	return f.File.Write(p)
}

// TestRun_FlushesRows: a pipe gets each row at once. A file gets them together, also
// those before the end of a run that fails.
func TestRun_FlushesRows(t *testing.T) {
	const rows = "name,age,tags\nAda,36,\nBob,41,\nEve,7,\nZoe,old,\nKim,3,\n"
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"app.qtype.yaml": document, "in.csv": rows} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	app, err := qtype.Open(t.Context(), "app.qtype.yaml", qtype.WithEphemeral())
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close(context.Background())
	pipe := &writes{}
	file, err := os.Create("out.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	run := func(s *terminal.Streams) {
		s.In, s.Err = strings.NewReader(""), &bytes.Buffer{}
		if err := batch.Run(t.Context(), app, batch.Config{InputFile: "in.csv", MaxFailures: 1, Streams: s}); err == nil || errors.Is(err, batch.ErrRowsFailed) {
			t.Fatalf("the run ended with %v", err)
		}
	}
	run(&terminal.Streams{Out: pipe})
	run(&terminal.Streams{Out: file})
	if pipe.number != 4 {
		t.Errorf("the pipe got %d writes of 4 rows:\n%s", pipe.number, pipe)
	}
	if got, err := os.ReadFile("out.jsonl"); err != nil || string(got) != pipe.String() {
		t.Errorf("the file has\n%s%v\nthe pipe got\n%s", got, err, pipe)
	}
}

// echo is an application that returns its input.
const echo = `id: app
flows:
  - id: talk
    variables: [{id: q, type: text}]
    inputs: [q]
    outputs: [q]
    steps: [{type: Echo, id: same, inputs: [q], outputs: [q]}]
`

// TestRun_FlushesManyRows: a file gets rows together also behind the writer of the command
// that replaces secrets.
func TestRun_FlushesManyRows(t *testing.T) {
	t.Chdir(t.TempDir())
	const rows = 2000
	testkit.Must(t, os.WriteFile("app.qtype.yaml", []byte(echo), 0o600))
	testkit.Must(t, os.WriteFile("in.csv", []byte("q\n"+strings.Repeat("hello\n", rows)), 0o600))
	app, err := qtype.Open(t.Context(), "app.qtype.yaml", qtype.WithEphemeral())
	testkit.Must(t, err)
	defer app.Close(context.Background())
	created, err := os.Create("out.jsonl")
	testkit.Must(t, err)
	file := &countedFile{File: created}
	defer func() { _ = file.Close() }()
	s := &terminal.Streams{In: strings.NewReader(""), Out: redact.New().NewWriter(file), Err: &bytes.Buffer{}}
	testkit.Must(t, batch.Run(t.Context(), app, batch.Config{InputFile: "in.csv", Streams: s}))
	if file.number > rows/2 {
		t.Errorf("%d writes of %d rows", file.number, rows)
	}
	if got, err := os.ReadFile("out.jsonl"); err != nil || bytes.Count(got, []byte("\n")) != rows {
		t.Errorf("%d rows in the file, %v", bytes.Count(got, []byte("\n")), err)
	}
}

// TestRun_EscapesOnTerminal: texts of rows do not reach a terminal as sequences, but they do
// reach a pipe.
func TestRun_EscapesOnTerminal(t *testing.T) {
	t.Chdir(t.TempDir())
	testkit.Must(t, os.WriteFile("app.qtype.yaml", []byte(echo), 0o600))
	app, err := qtype.Open(t.Context(), "app.qtype.yaml", qtype.WithEphemeral())
	testkit.Must(t, err)
	defer app.Close(context.Background())
	for _, format := range []string{"csv", "tsv"} {
		for isTerminal, want := range map[bool]string{true: `\u001b]52;c;eA==\u0007 \u202ered`, false: "\x1b]52;c;eA==\a \u202ered"} {
			var out bytes.Buffer
			s := &terminal.Streams{In: strings.NewReader(""), Out: &out, Err: &bytes.Buffer{}, OutTerminal: isTerminal}
			testkit.Must(t, batch.Run(t.Context(), app, batch.Config{Input: `{"q": "\u001b]52;c;eA==\u0007 \u202ered"}`, Format: format, Streams: s}))
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s, terminal %v: %q", format, isTerminal, out.String())
			}
		}
	}
}
