package batch_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"
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

func (l *loopback) ID() string                                  { return "r1" }
func (l *loopback) Wait(context.Context, batch.EngineJob) error { return nil }
func (l *loopback) Advice() string                              { return "it is elsewhere" }
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
		codec, opts := l.codec, []runtime.RunOption{}
		if l.codec.HasBatches() {
			codec, opts = l.codec.Head(), []runtime.RunOption{runtime.WithHead()}
		}
		var made [][]byte
		for _, row := range slices.Backward(rows) {
			var of [][]byte
			codec.Reset()
			for res, err := range l.app.Run(ctx, "", slices.Values([]runtime.Input{runtime.EncodedInput(row)}), opts...) {
				if err != nil {
					yield(nil, err)
					return
				}
				of = append(of, codec.AppendResult(nil, res))
			}
			made = append(of, made...)
		}
		if l.fail != nil {
			yield(nil, l.fail)
			return
		}
		job.Progress.Set(int64(len(rows)), int64(len(made)), 0, []runtime.StepProgress{{Step: "repeat", In: int64(len(rows))}})
		results := func(yield func(*runtime.Result, error) bool) {
			for _, data := range made {
				res, err := codec.DecodeResult(data)
				if !yield(res, err) {
					return
				}
			}
		}
		if l.codec.HasBatches() {
			results = l.app.Run(ctx, "", headInputs(results), runtime.WithTail())
		}
		for res, err := range results {
			if !yield(res, err) {
				return
			}
		}
	}
}

// headInputs returns the inputs of the steps after the results.
func headInputs(results iter.Seq2[*runtime.Result, error]) iter.Seq[runtime.Input] {
	return func(yield func(runtime.Input) bool) {
		for res, err := range results {
			if err != nil {
				panic(err)
			}
			if !yield(runtime.HeadInput(res)) {
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

// TestEngine_Batches: a flow with batch steps has the results of a run in this process if the steps before the first of them
// run elsewhere.
func TestEngine_Batches(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("name,age,tags\n")
	for i := range 50 {
		age := strconv.Itoa(i % 7)
		if i%9 == 0 {
			age = "old"
		}
		fmt.Fprintf(&rows, "n%d,%s,\"[\"\"x\"\", \"\"y%d\"\"]\"\n", i/3, age, i%2)
	}
	declare := func(variables, outputs, steps string) string {
		return "id: app\nflows:\n  - id: sum\n    variables: [{id: name, type: text}, {id: age, type: int}, {id: tags, type: 'list[text]'}" + variables + "]\n" +
			"    inputs: [name, age, tags]\n    outputs: [" + outputs + "]\n    steps: [" + steps + "]\n"
	}
	explode := "{type: Explode, id: each, inputs: [tags], outputs: [tag]}"
	for name, document := range map[string]string{
		"first":   declare(", {id: all, type: 'list[text]'}", "all", "{type: Collect, id: all_names, inputs: [name], outputs: [all]}"),
		"batches": declare(", {id: tag, type: text}, {id: all, type: 'list[text]'}", "all", explode+", {type: Collect, id: some, inputs: [tag], outputs: [all], batch_config: {batch_size: 7}}"),
		"groups":  declare(", {id: tag, type: text}, {id: all, type: 'list[text]'}", "name, all", explode+", {type: Collect, id: some, inputs: [tag], outputs: [all], group_by: [name, tags]}"),
		"two": declare(", {id: tag, type: text}, {id: all, type: 'list[text]'}, {id: again, type: text}, {id: last, type: 'list[text]'}", "last",
			explode+", {type: Collect, id: some, inputs: [tag], outputs: [all], batch_config: {batch_size: 4}}, {type: Explode, id: more, inputs: [all], outputs: [again]}, {type: Collect, id: end, inputs: [again], outputs: [last], batch_config: {batch_size: 5}}"),
		"counts": declare(", {id: count, type: AggregateStats}", "count", "{type: Aggregate, id: rows, outputs: [count]}"),
		"file":   declare(", {id: file, type: text}", "name", "{type: FileWriter, id: write, inputs: [name, age], path: {uri: all.csv}, outputs: [file]}"),
	} {
		t.Run(name, func(t *testing.T) {
			got := map[bool][]string{}
			for _, remote := range []bool{false, true} {
				cfg := batch.Config{InputFile: "in.csv", Output: "out.jsonl", ErrorFile: "failed.csv"}
				if remote {
					cfg.Engine = &loopback{}
				}
				_, _, err := run(t, map[string]string{"in.csv": rows.String(), "app.qtype.yaml": document}, "", cfg)
				if !errors.Is(err, batch.ErrRowsFailed) {
					t.Fatal(err)
				}
				for _, file := range []string{"out.jsonl", "failed.csv", "all.csv"} {
					text, _ := os.ReadFile(file)
					got[remote] = append(got[remote], string(text))
				}
			}
			if diff := cmp.Diff(got[false], got[true]); diff != "" || strings.Count(got[false][0], "\n") == 0 {
				t.Error(diff)
			}
		})
	}
}
