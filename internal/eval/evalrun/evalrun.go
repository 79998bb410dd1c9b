// Package evalrun runs a data set through a flow, scores the results by metrics, compares
// variants of the application with each other and with an earlier evaluation, and reports
// the result. Package eval reads and checks what is evaluated.
package evalrun

import (
	"cmp"
	"context"

	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/recording"
	"github.com/qtype-dev/qtype/internal/recording/calls"
	"github.com/qtype-dev/qtype/internal/tool/mockstate"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// Program is an application that is evaluated.
type Program struct {
	App *spec.Application
	// New makes the application with what an evaluation replaces in it. Memories are in process.
	New func(Replacement) (*runtime.App, error)
}

// Replacement is what an evaluation replaces in an application.
type Replacement struct {
	Tools []*spec.ToolMock // in place of tools
	State *mockstate.State // that the mocks of tools read and change; nil for none
	Mocks runtime.Mocks    // of what is recorded; NoStepCache: trials of a row are independent
}

// Opener is an eval.Opener whose applications can run.
type Opener func(ctx context.Context, path string, c eval.Change) (*Program, diag.List)

// Config describes an evaluation.
type Config struct {
	Path          string         // the document, or a file *.qtype-eval.yaml
	Data          string         // the file with the rows; empty for that of the evaluation file
	Flow          string         // the flow's id; empty for that of the evaluation file, or the first one
	Metrics       []string       // further metrics: a type, or the keys of a metric in YAML
	Variants      []string       // further variants: the keys of a variant in YAML
	Attack        string         // categories of attacks, or the keys of attacks in YAML, in place of data and users; "all" are all categories
	Session       string         // the column with the session of each row; empty for session_id or session
	Workers       int            // rows that are run at once
	Limit         int64          // rows to evaluate; 0 for all
	Trials        int            // of each row; 0 for those of the evaluation file
	Until         float64        // end when half of each interval of a score is at most this; 0 to evaluate all rows
	Budget        float64        // end when the models have cost as much, by their prices; 0 for no limit
	Gate          Gate           // which differences from the baseline fail the evaluation
	MaxRegression float64        // for metrics that declare none
	Baseline      *Report        // nil for none
	OnlyFailed    *Report        // evaluate only the rows that failed in this report; nil for all
	Journal       string         // the file with finished rows; empty for none
	Written       []string       // files that Save writes, which the data may not be; empty names are ignored
	Resume        bool           // continue an interrupted evaluation
	Restart       bool           // discard an interrupted evaluation
	Detach        bool           // with Waves: end with waves.ErrDetached when the batches of a wave are created
	Waves         *waves.Run     // makes the calls of models in batches of their providers; nil to make them at once. The context of Load has it, too
	Record        recording.Mode // what is done with calls, if the evaluation file declares recordings
	Optimize      bool           // the application is optimized: see Open

	Progress func(done, total int) // called after each row; may be nil
	Save     func(*Report) error   // called before the journal is removed, which stays after an error; may be nil
}

// Evaluation is a checked evaluation that can run.
type Evaluation struct {
	config   Config
	flow     *spec.Flow // of the application without a variant
	data     string
	tools    []*spec.ToolMock // in place of those of the application
	metrics  []*metric
	variants []*variant
	base     *Program
	trials   int // of each row
	users    []*eval.User
	talk     *eval.Talk    // nil without users
	attacks  *eval.Attacks // nil without attacks
	recorded *calls.File   // nil if the file declares none
	warnings []string      // about the evaluation file

	// Optimization is what an optimization changes; nil if the file has none.
	Optimization *eval.Optimization
	path         string // of the application
	open         Opener
}

// Gate is which differences from a baseline, beyond the limits, fail an evaluation.
type Gate string

// The gates.
const (
	GateProven Gate = "proven" // those that chance does not explain; the default
	GateMean   Gate = "mean"   // all
)

// variant is an application that is evaluated.
type variant struct {
	declared *spec.Variant
	program  *Program
}

// Load reads and checks what is evaluated, as eval.Load does. The Evaluation is nil if the
// list has errors.
func Load(ctx context.Context, cfg Config, opts loader.Options, open Opener) (*Evaluation, diag.List) {
	opened := map[*spec.Application]*Program{}
	r := eval.Request{Optimize: cfg.Optimize, Path: cfg.Path, Data: cfg.Data, Flow: cfg.Flow, Metrics: cfg.Metrics, Variants: cfg.Variants, Attack: cfg.Attack}
	checked, list := eval.Load(ctx, r, opts, func(ctx context.Context, path string, c eval.Change) (*spec.Application, diag.List) {
		p, list := open(waves.WithPart(ctx, len(opened)), path, c)
		opened[p.App] = p
		return p.App, list
	})
	if checked == nil {
		return nil, list
	}
	e := &Evaluation{
		config: cfg, flow: checked.Flow, data: checked.Data, tools: checked.Tools, base: opened[checked.App], trials: cmp.Or(cfg.Trials, checked.Trials),
		users: checked.Users, talk: checked.Talk, attacks: checked.Attacks, recorded: checked.Recordings, Optimization: checked.Optimization, path: checked.Path, open: open,
	}
	for _, d := range list {
		e.warnings = append(e.warnings, d.Error())
	}
	for _, m := range checked.Metrics {
		made := &metric{declared: m.Declared, row: m.Row, output: m.Output, model: m.Model, judges: m.Judges, labelled: m.Labelled, sources: m.Sources, fixed: m.Fixed, score: builders()[m.Row.Name](m.Declared)}
		if m.Declared.Not {
			made.score = negated(made.score, m.Declared)
		}
		e.metrics = append(e.metrics, made)
	}
	for _, v := range checked.Variants {
		e.variants = append(e.variants, &variant{v.Declared, opened[v.App]})
	}
	return e, list
}
