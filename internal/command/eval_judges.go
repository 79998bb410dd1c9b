package command

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// judgeCheckCommand is one call of qtype eval judge-check.
type judgeCheckCommand struct {
	*cli.Streams
	qtype.EvaluationConfig
	metric string
	record string
	format *cli.EnumFlag
	access appflags.Access
}

func newJudgeCheck(s *cli.Streams) *cobra.Command {
	j := &judgeCheckCommand{Streams: s, format: cli.NewEnumFlag("text", "json")}
	c := &cobra.Command{
		Use:   "judge-check EVALUATION",
		Short: "Measure how judges agree with people",
		Long: `Asks the judges of an evaluation about results that people have labelled, and measures their
agreement, and how it depends on order and length. A judge is refused, and the exit status is 1, if it
agrees less than check of its metric says.`,
		Example: `  qtype eval judge-check judges.qtype-eval.yaml
  qtype eval judge-check judges.qtype-eval.yaml --metric polite --format json`,
		Args: cli.Arguments("an evaluation: qtype eval judge-check EVALUATION"), ValidArgsFunction: cli.YAMLFiles,
		RunE: func(c *cobra.Command, args []string) error {
			j.Path = args[0]
			return j.run(c.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&j.metric, "metric", "", "check only the metric with this `ID`")
	f.StringVar(&j.record, "record", "", "call models and write the recordings; `missing` adds only those that do not exist")
	f.Lookup("record").NoOptDefVal = "all"
	f.IntVar(&j.Workers, "workers", defaultWorkers, "ask about `N` rows at once")
	j.format.AddTo(c, "format", "", "output format")
	j.access.AddTo(f)
	return c
}

func (j *judgeCheckCommand) run(ctx context.Context) (err error) {
	if j.Record, err = recordMode(j.record); err != nil {
		return err
	}
	if j.Workers < 1 {
		return terminal.Usagef("--workers cannot be %d: expected a positive number", j.Workers)
	}
	reports, err := qtype.CheckJudges(ctx, j.EvaluationConfig, j.metric, j.access.Options(qtype.WithLog(j.Logger("")))...)
	var usage *evalrun.UsageError
	switch {
	case errors.As(err, &usage):
		return terminal.Usagef("%s", usage)
	case err != nil:
		return err
	}
	if err := j.show(reports); err != nil {
		return err
	}
	if slices.ContainsFunc(reports, func(r *qtype.JudgeReport) bool { return len(r.Violations) > 0 }) {
		return cli.ErrSilent
	}
	return nil
}

// show writes the reports to standard output.
func (j *judgeCheckCommand) show(reports []*qtype.JudgeReport) error {
	if j.format.Value == "json" {
		return textfmt.WriteJSON(j.Out, reports)
	}
	for i, r := range reports {
		if i > 0 {
			fmt.Fprintln(j.Out)
		}
		if err := r.Text(j.Out); err != nil {
			return err
		}
	}
	return nil
}
