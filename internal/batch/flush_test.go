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
	"github.com/qtype-dev/qtype/internal/terminal"
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
