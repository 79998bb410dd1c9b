package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/estimate"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// costCommand is one call of qtype cost.
type costCommand struct {
	*streams
	qtype.EstimateConfig
	format     *enumFlag
	limit      float64
	worstLimit float64
	access     accessFlags
	flags      *pflag.FlagSet
}

// defaultSample is how many rows are run with mocks.
const defaultSample = 20

func newCost(s *streams) *cobra.Command {
	k := &costCommand{streams: s, format: newEnumFlag("text", "json")}
	c := &cobra.Command{
		Use:   "cost APP",
		Short: "Estimate the tokens and the cost of a run",
		Long: `Estimates what a run of a flow will cost, without calls of models, tools and servers:
the first rows run with mocks, whose tokens are counted as those of the models. The
worst case is what context windows and the budget of the flow allow.`,
		Example: `  qtype cost app.qtype.yaml --data messages.csv
  qtype cost app.qtype.yaml --data sample.csv --rows 100000 --limit 25
  qtype cost app.qtype.yaml --data messages.csv --format json`,
		Args: arguments("a document: qtype cost APP"), ValidArgsFunction: yamlFiles,
		RunE: func(c *cobra.Command, args []string) error { return k.run(c.Context(), args[0]) },
	}
	f := c.Flags()
	k.flags = f
	f.SortFlags = false
	addFlags(f, "Rows and answers", func() {
		f.StringVar(&k.Data, "data", "", "rows of `FILE`: .csv .tsv .json .jsonl .parquet .xlsx")
		f.StringVarP(&k.Flow, "flow", "f", "", "`ID` of the flow (default: the first one)")
		f.Int64Var(&k.Rows, "rows", 0, "rows of the run (default: those of the file)")
		f.IntVar(&k.Sample, "sample", defaultSample, "estimate from the first `N` rows")
		f.IntVar(&k.OutputTokens, "output-tokens", 0, "tokens of each answer (default: those of the mock's answer, or 200)")
	})
	addFlags(f, "Report", func() {
		f.Float64Var(&k.limit, "limit", 0, "fail if the expected cost is above `MONEY`")
		f.Float64Var(&k.worstLimit, "worst-limit", 0, "fail if the worst case is above `MONEY`, or not limited")
		k.format.addTo(c, "format", "", "output format")
	})
	addFlags(f, "Access", func() { k.access.addTo(f) })
	groupHelp(c)
	return c
}

// check rejects flags that have no effect.
func (k *costCommand) check() error {
	switch {
	case k.Rows < 0, k.flags.Changed("rows") && k.Rows == 0:
		return usagef("--rows cannot be %d: expected a positive number of rows", k.Rows)
	case k.Sample < 1:
		return usagef("--sample cannot be %d: expected a positive number of rows", k.Sample)
	case k.OutputTokens < 0:
		return usagef("--output-tokens cannot be %d: expected a positive number", k.OutputTokens)
	}
	for name, v := range map[string]float64{"limit": k.limit, "worst-limit": k.worstLimit} {
		if !(v >= 0) {
			return usagef("--%s cannot be %v: expected an amount of money", name, v)
		}
	}
	return nil
}

func (k *costCommand) run(ctx context.Context, path string) error {
	if err := k.check(); err != nil {
		return err
	}
	r, err := qtype.Estimate(ctx, path, k.EstimateConfig, k.access.options(qtype.WithLog(func(string) {}))...)
	if err != nil {
		return err
	}
	if k.format.value == "json" {
		e := json.NewEncoder(k.Out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		_, err = fmt.Fprint(k.Out, costText(r))
	}
	if err != nil {
		return err
	}
	return k.exceeded(r)
}

// exceeded returns an error if the estimate is above a limit, or cannot be compared.
func (k *costCommand) exceeded(r *qtype.EstimateReport) error {
	limited, worstLimited := k.flags.Changed("limit"), k.flags.Changed("worst-limit")
	switch {
	case r.Failed == r.Sample:
		return fmt.Errorf("no row could be estimated: %s", r.Reason)
	case limited && r.Failed > 0:
		return fmt.Errorf("--limit: %s could not be estimated: %s", textfmt.Count(int64(r.Failed), "row"), r.Reason)
	case limited && len(r.Unpriced) > 0:
		return fmt.Errorf("--limit: model %s has no prices", textfmt.List(r.Unpriced))
	case limited && r.Expected.Money > k.limit:
		return fmt.Errorf("the expected cost %.6g is above the limit %.6g", r.Expected.Money, k.limit)
	case worstLimited && !r.Worst.Known:
		return fmt.Errorf("the worst case is not limited: %s", strings.Join(r.Worst.Open, "; "))
	case worstLimited && r.Worst.Money > k.worstLimit:
		return fmt.Errorf("the worst case %.6g is above the limit %.6g", r.Worst.Money, k.worstLimit)
	}
	return nil
}

// costText returns the report for a terminal.
func costText(r *qtype.EstimateReport) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s · flow %s · %s, estimated from %d\n\n", terminal.Clean(r.App), terminal.Clean(r.Flow), textfmt.Count(r.Rows, "row"), r.Sample-r.Failed)
	fmt.Fprintf(&b, "%-20s %12s %14s %14s %12s\n", "model", "calls", "tokens in", "tokens out", "cost")
	line := func(name string, calls, input, output float64, cost string) {
		fmt.Fprintf(&b, "%-20s %12.0f %14.0f %14.0f %12s\n", terminal.Clean(name), calls, input, output, cost)
	}
	for _, m := range r.Models {
		cost := fmt.Sprintf("%.4f", m.Money)
		if !m.Priced {
			cost = "no prices"
		}
		line(m.ID, m.Calls, m.Input, m.Output, cost)
	}
	line("expected", r.Expected.Calls, r.Expected.Input, r.Expected.Output, fmt.Sprintf("%.4f", r.Expected.Money))
	b.WriteByte('\n')
	b.WriteString(priceLines(r))
	if r.Worst.Known {
		fmt.Fprintf(&b, "worst case: %.4f, limited by the %s\n", r.Worst.Money, map[string]string{"windows": "context windows", "budget": "budget of the flow"}[r.Worst.By])
	} else {
		fmt.Fprintf(&b, "worst case: not limited: %s\n", terminal.Clean(strings.Join(r.Worst.Open, "; ")))
	}
	if r.Failed > 0 {
		fmt.Fprintf(&b, "%s of the sample failed: %s\n", textfmt.Count(int64(r.Failed), "row"), terminal.Clean(r.Reason))
	}
	return b.String()
}

// priceLines explains where the prices of the models are from.
func priceLines(r *qtype.EstimateReport) string {
	var declared, builtin []string
	for _, m := range r.Models {
		switch m.Prices {
		case estimate.DeclaredPrices:
			declared = append(declared, m.ID)
		case estimate.BuiltinPrices:
			builtin = append(builtin, m.ID)
		}
	}
	var b strings.Builder
	for _, l := range []struct {
		format string
		models []string
	}{
		{"prices of %s: those of the document (key prices)\n", declared},
		{"prices of %s: list prices of " + spec.PricesDate + " in US dollars, built into qtype; set prices in the model for others\n", builtin},
		{"no prices of %s: not part of the cost; set prices in the model\n", r.Unpriced},
	} {
		if len(l.models) > 0 {
			fmt.Fprintf(&b, l.format, terminal.Clean(textfmt.List(l.models)))
		}
	}
	return b.String()
}
