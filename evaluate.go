package qtype

import (
	"context"
	"net/http"
	"slices"

	"github.com/qtype-dev/qtype/internal/estimate"
	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/eval/optimize"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/tool"
)

// EvaluationConfig describes what Evaluate runs.
type EvaluationConfig = evalrun.Config

// EvaluationReport is the result of Evaluate.
type EvaluationReport = evalrun.Report

// Evaluate runs a data set through a flow of an application and scores the results by
// metrics. Each row runs by itself, with memories in process. If the document or the
// evaluation has errors, the error is a diag.List. Failed of the report is
// true if the evaluation does not succeed.
func Evaluate(ctx context.Context, cfg EvaluationConfig, opts ...Option) (*EvaluationReport, error) {
	e, err := loadEvaluation(ctx, cfg, opts)
	if err != nil {
		return nil, err
	}
	return e.Run(ctx)
}

// JudgeReport is how a judge agrees with people.
type JudgeReport = evalrun.JudgeReport

// CheckJudges measures the judges of an evaluation by results that people have labelled: of all metrics with a key check, or
// of the one with a name. If the document or the evaluation has errors, the error is a diag.List.
func CheckJudges(ctx context.Context, cfg EvaluationConfig, metric string, opts ...Option) ([]*JudgeReport, error) {
	e, err := loadEvaluation(ctx, cfg, opts)
	if err != nil {
		return nil, err
	}
	return e.CheckJudges(ctx, metric)
}

// OptimizationConfig describes what Optimize changes and runs.
type OptimizationConfig = optimize.Config

// OptimizationReport is the result of Optimize.
type OptimizationReport = optimize.Report

// Optimize changes texts and values of a document so that an evaluation has better scores. Found of the report is true if
// rows that the search has not used prove it. No file is changed: see OptimizationReport.Apply. If the document or the
// evaluation has errors, the error is a diag.List.
func Optimize(ctx context.Context, cfg OptimizationConfig, opts ...Option) (*OptimizationReport, error) {
	cfg.Optimize = true
	e, err := loadEvaluation(ctx, cfg.Config, opts)
	if err != nil {
		return nil, err
	}
	return optimize.Run(ctx, cfg, e)
}

// loadEvaluation reads and checks what is evaluated. The error is a diag.List.
func loadEvaluation(ctx context.Context, cfg EvaluationConfig, opts []Option) (*evalrun.Evaluation, error) {
	e, list := evalrun.Load(ctx, cfg, loader.Options{}, func(ctx context.Context, path string, c eval.Change) (*evalrun.Program, diag.List) {
		return openVariant(ctx, path, c, slices.Clone(opts))
	})
	return e, list.Err()
}

// openVariant is an evalrun.Opener.
func openVariant(ctx context.Context, path string, c eval.Change, opts []Option) (*evalrun.Program, diag.List) {
	opts = append(opts, WithStrict(), WithEphemeral())
	opts = append(opts, func(o *options) { o.check.Change(c) })
	p, list := Check(ctx, path, opts...)
	return &evalrun.Program{App: p.Document.Application, New: func(r evalrun.Replacement) (*runtime.App, error) {
		own := append(slices.Clone(opts), WithToolMocks(r.Tools...))
		return New(p, append(own, func(o *options) { o.run.Mocks, o.state = r.Mocks, r.State })...)
	}}, list
}

// EstimateConfig describes what Estimate computes.
type EstimateConfig = estimate.Config

// EstimateReport is the result of Estimate.
type EstimateReport = estimate.Report

// Estimate computes what a run of a flow will cost. It calls no model, tool or server:
// some rows run with mocks, whose tokens are counted as those of the models. If the
// document has errors, the error is a diag.List.
func Estimate(ctx context.Context, path string, cfg EstimateConfig, opts ...Option) (*EstimateReport, error) {
	p, list := Check(ctx, path, opts...)
	if err := list.Err(); err != nil {
		return nil, err
	}
	return estimate.Run(ctx, cfg, func(m runtime.Mocks, c *http.Client) (*runtime.App, error) {
		return New(p, append(slices.Clone(opts), WithEphemeral(), WithMocks(m), WithHTTP(c), WithApproval(approveAll))...)
	})
}

// approveAll approves calls where no tool is called.
func approveAll(context.Context, tool.Request) (bool, string, error) { return true, "", nil }
