package qtype

import (
	"context"
	"net/http"
	"slices"

	"github.com/qtype-dev/qtype/internal/estimate"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/tool"
)

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
