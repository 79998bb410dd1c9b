package batch_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// TestRun_ComputingFlowStoresNoRows: an interrupted run of steps that only compute is
// resumed by computing all rows again. Its journal has no rows, so that a run without
// --resume starts over.
func TestRun_ComputingFlowStoresNoRows(t *testing.T) {
	t.Chdir(t.TempDir())
	rows := "name,age,tags\nAda,36,\nBob,old,\nEve,7,\n"
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
	run := func(cfg batch.Config) (errs string, err error) {
		var text strings.Builder
		cfg.InputFile, cfg.Output, cfg.Command = "in.csv", "out.jsonl", []string{"run", "app.qtype.yaml"}
		cfg.Streams = &terminal.Streams{In: strings.NewReader(""), Out: &strings.Builder{}, Err: &text}
		err = batch.Run(t.Context(), app, cfg)
		return text.String(), err
	}
	_, err = run(batch.Config{MaxFailures: 1})
	if err == nil || !strings.Contains(err.Error(), "all rows run again") || !strings.Contains(err.Error(), "qtype run app.qtype.yaml --resume") {
		t.Fatalf("the interrupted run ended with %v", err)
	}
	for _, cfg := range []batch.Config{{Resume: true}, {MaxFailures: 1}, {}} {
		errs, err := run(cfg)
		if cfg.MaxFailures == 0 && !strings.Contains(errs, "2 done, 1 failed") {
			t.Errorf("%+v: %v\n%s", cfg, err, errs)
		}
		if strings.Contains(errs, "resumed") {
			t.Errorf("%+v: rows were taken from the journal:\n%s", cfg, errs)
		}
	}
}
