package batch_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// loopback is an engine that takes rows and results through their encoding and runs them
// in reverse order.
type loopback struct {
	app   *runtime.App
	codec *runtime.RowCodec
	cfg   *batch.Config
	fail  error // ends the run; may be nil
	done  bool
}

func (l *loopback) Open(_ context.Context, app *runtime.App, flow *spec.Flow, cfg *batch.Config) (batch.EngineRun, error) {
	codec, err := app.NewRowCodec(flow.ID)
	l.app, l.codec, l.cfg = app, codec, cfg
	return l, err
}

func (l *loopback) ID() string     { return "r1" }
func (l *loopback) Advice() string { return "it is elsewhere" }
func (l *loopback) Close(done bool) error {
	l.done = done
	return nil
}

func (l *loopback) Run(ctx context.Context, job batch.EngineJob) iter.Seq2[*runtime.Result, error] {
	return func(yield func(*runtime.Result, error) bool) {
		var rows [][]byte
		for in := range job.Rows {
			data, _ := l.codec.EncodeInput(ctx, in, int64(len(rows))+1)
			rows = append(rows, data)
		}
		var made [][]byte
		for _, row := range slices.Backward(rows) {
			var of [][]byte
			for res, err := range l.app.Run(ctx, "", slices.Values([]runtime.Input{runtime.EncodedInput(row)})) {
				if err != nil {
					yield(nil, err)
					return
				}
				l.codec.Reset()
				of = append(of, l.codec.AppendResult(nil, res))
			}
			made = append(of, made...)
		}
		if l.fail != nil {
			yield(nil, l.fail)
			return
		}
		job.Progress.Set(int64(len(rows)), int64(len(made)), 0, []runtime.StepProgress{{Step: "repeat", In: int64(len(rows))}})
		for _, data := range made {
			l.codec.Reset()
			res, err := l.codec.DecodeResult(data)
			if !yield(res, err) {
				return
			}
		}
	}
}

// TestEngine: a run by an engine has the output, the failed rows and the summary of a run in
// this process.
func TestEngine(t *testing.T) {
	rows := "name,age,tags\nAda,36,\"[\"\"x\"\", \"\"y\"\"]\"\nBob,old,\nEve,7,\n"
	got := map[bool][]string{}
	for _, remote := range []bool{false, true} {
		engine := &loopback{}
		cfg := batch.Config{InputFile: "in.csv", Output: "out.jsonl", ErrorFile: "failed.csv"}
		if remote {
			cfg.Engine = engine
		}
		_, errs, err := run(t, map[string]string{"in.csv": rows}, "", cfg)
		if !errors.Is(err, batch.ErrRowsFailed) || engine.done != remote {
			t.Fatalf("got %v, done %t", err, engine.done)
		}
		for _, file := range []string{"out.jsonl", "failed.csv"} {
			text, _ := os.ReadFile(file)
			got[remote] = append(got[remote], string(text))
		}
		errs, _, _ = strings.Cut(errs, ", written to")
		got[remote] = append(got[remote], errs)
	}
	if diff := cmp.Diff(got[false], got[true]); diff != "" {
		t.Error(diff)
	}
}

// TestEngine_Failure: the error of an engine has its advice, and nothing is written.
func TestEngine_Failure(t *testing.T) {
	engine := &loopback{fail: errors.New("lost")}
	_, _, err := run(t, map[string]string{"in.csv": "name,age\nAda,36\n"}, "", batch.Config{
		InputFile: "in.csv", Output: "out.csv", Engine: engine, Command: []string{"run", "app.qtype.yaml", "--restart"},
	})
	want := "lost: out.csv was not written: it is elsewhere; continue with: qtype run app.qtype.yaml --resume"
	if err == nil || err.Error() != want || engine.done {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := os.Stat("out.csv"); err == nil {
		t.Error("out.csv was written")
	}
}

// TestEngine_Divisible: flows whose results depend on all rows have no codec.
func TestEngine_Divisible(t *testing.T) {
	for want, change := range map[string][2]string{
		"step all works on many rows at once": {"outputs: [name, age, tags]}]", "outputs: [name, age, tags]}, {type: FileWriter, id: all, inputs: [name], path: {uri: all.csv}}]"},
	} {
		files := map[string]string{"app.qtype.yaml": strings.Replace(document, change[0], change[1], 1), "in.csv": "name,age\nAda,36\n"}
		_, _, err := run(t, files, "", batch.Config{InputFile: "in.csv", Engine: &loopback{}})
		if failure, ok := errors.AsType[*runtime.NotDivisibleError](err); !ok || !strings.Contains(failure.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
