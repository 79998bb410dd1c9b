package command

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/estimate"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// costCommand is one call of qtype cost.
type costCommand struct {
	*cli.Streams
	qtype.EstimateConfig
	format     *cli.EnumFlag
	batch      *cli.EnumFlag
	limit      float64
	worstLimit float64
	clients    *appflags.Clients
	log        appflags.LogLevel
	access     appflags.Access
	flags      *pflag.FlagSet
}

// defaultSample is how many rows are run with mocks.
const defaultSample = 20

func newCost(s *cli.Streams) *cobra.Command {
	k := &costCommand{Streams: s, clients: appflags.NewClients(s), format: cli.NewEnumFlag("text", "json"), batch: cli.NewEnumFlag("", batchAlways, batchFlex, batch2h, batch8h)}
	c := &cobra.Command{
		Use:   "cost APP",
		Short: "Estimate the tokens and the cost of a run",
		Long: `Estimates what a run of a flow will cost, without calls of models, tools and servers:
the first rows run with mocks, whose tokens are counted as those of the models. The
worst case is what context windows and the budget of the flow allow.`,
		Example: `  qtype cost app.qtype.yaml --data messages.csv
  qtype cost app.qtype.yaml --data sample.csv --rows 100000 --limit 25
  qtype cost app.qtype.yaml --data messages.csv --format json`,
		Args: cli.Arguments("a document: qtype cost APP"), ValidArgsFunction: cli.YAMLFiles,
		RunE: func(c *cobra.Command, args []string) error {
			if err := k.log.Check(c); err != nil {
				return err
			}
			return k.run(k.log.Context(c.Context(), k.Streams), args[0])
		},
	}
	f := c.Flags()
	k.flags = f
	f.SortFlags = false
	cli.AddFlags(f, "Rows and answers", func() {
		f.StringVar(&k.Data, "data", "", "rows of `FILE`: .csv .tsv .json .jsonl .parquet .xlsx, or - for standard input")
		f.StringVarP(&k.Flow, "flow", "f", "", "`ID` of the flow (default: the first one)")
		f.Int64Var(&k.Rows, "rows", 0, "rows of the run (default: those of the file)")
		f.IntVar(&k.Sample, "sample", defaultSample, "estimate from the first `N` rows")
		k.batch.AddTo(c, "batch", "", "also estimate a run with --batch, its price and its waves, or with --batch=flex, 2h or 8h")
		f.Lookup("batch").NoOptDefVal = batchAlways
		f.IntVar(&k.OutputTokens, "output-tokens", 0, "tokens of each answer (default: those of the mock's answer, or 200)")
	})
	cli.AddFlags(f, "Report", func() {
		f.Float64Var(&k.limit, "limit", 0, "fail if the expected cost is above `MONEY`")
		f.Float64Var(&k.worstLimit, "worst-limit", 0, "fail if the worst case is above `MONEY`, or not limited")
		k.format.AddTo(c, "format", "", "output format")
	})
	cli.AddFlags(f, "Tools", func() { k.clients.AddMocksTo(f) })
	cli.AddFlags(f, "Access", func() { k.access.AddTo(f) })
	cli.AddFlags(f, "Messages", func() { k.log.AddTo(c, "print only why a limit is exceeded") })
	cli.GroupHelp(c)
	return c
}

// check rejects flags that have no effect.
func (k *costCommand) check() error {
	switch {
	case k.Rows < 0, k.flags.Changed("rows") && k.Rows == 0:
		return terminal.Usagef("--rows cannot be %d: expected a positive number of rows", k.Rows)
	case k.Sample < 1:
		return terminal.Usagef("--sample cannot be %d: expected a positive number of rows", k.Sample)
	case k.OutputTokens < 0, k.flags.Changed("output-tokens") && k.OutputTokens == 0, k.OutputTokens > estimate.MaxOutputTokens:
		return terminal.Usagef("--output-tokens cannot be %d: expected a number from 1 to %d", k.OutputTokens, estimate.MaxOutputTokens)
	}
	for name, v := range map[string]float64{"limit": k.limit, "worst-limit": k.worstLimit} {
		if !(v >= 0) {
			return terminal.Usagef("--%s cannot be %v: expected an amount of money", name, v)
		}
	}
	return nil
}

func (k *costCommand) run(ctx context.Context, path string) error {
	if err := k.check(); err != nil {
		return err
	}
	k.In, k.Batch, k.Flex = k.Streams.In, k.batch.Value == batchAlways, k.batch.Value == batchFlex
	if k.batch.Value == batch2h || k.batch.Value == batch8h {
		k.Window = k.batch.Value
	}
	r, err := qtype.Estimate(ctx, path, k.EstimateConfig, k.access.Options(qtype.WithLog(func(string) {}), qtype.WithOptionsFor(k.clients.Options))...)
	if err != nil {
		return err
	}
	write := r.Text
	if k.format.Value == "json" {
		write = r.JSON
	}
	if !k.log.Quiet {
		if err := write(k.Out); err != nil {
			return err
		}
	}
	var limits estimate.Limits
	if k.flags.Changed("limit") {
		limits.Expected = &k.limit
	}
	if k.flags.Changed("worst-limit") {
		limits.Worst = &k.worstLimit
	}
	return r.Exceeds(limits)
}
