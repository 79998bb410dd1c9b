package command

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/diag"
)

// convertCommand is one call of qtype convert.
type convertCommand struct {
	*cli.Streams
	output string
	strict bool
	format *cli.EnumFlag
}

// newConvert returns qtype convert.
func newConvert(s *cli.Streams) *cobra.Command {
	v := &convertCommand{Streams: s, format: cli.NewEnumFlag("text", "json")}
	c := &cobra.Command{
		Use:   "convert KIND FILE",
		Short: "Convert a file of another system to a QType document",
		Long: `Converts a file of another system to a QType document and prints it. KIND is

  airefinery  a project file of AI Refinery, or only its memory_config
  xflow       a workflow of xFlow, a list of its states, or only a memory block
  promptflow  a flow.dag.yaml of prompt flow, or a Prompty file
  langchain4j a Java file of a program with LangChain4j, its application.properties or
              application.yml, or the folder of all its files
  langgraph   a Python file of a program with LangGraph, or a langgraph.json
  promptfoo   a promptfooconfig.yaml: an application, its evaluation and the rows
  openai-evals
              an eval of OpenAI's Evals API with its runs, as JSON, or a file of
              the registry of OpenAI Evals: the same
  api         an OpenAPI 3 or Swagger 2 file: a tool for each operation
  module      a Python module, also by its dotted name: a tool for each public function;
              it is parsed, not run

FILE may be - for standard input. What the document cannot express is reported on
standard error, with its location. After warnings the document has the same results
as the file; the exit status is 0. After errors it differs: it is written with a
comment TODO at each place, and the exit status is 1.`,
		Example: `  qtype convert xflow workflow.yaml -o app.qtype.yaml
  qtype convert airefinery project.yaml
  qtype convert promptflow flow.dag.yaml -o app.qtype.yaml
  qtype convert langchain4j Shop.java -o app.qtype.yaml
  qtype convert langgraph agent.py -o app.qtype.yaml
  qtype convert promptfoo promptfooconfig.yaml -o app.qtype.yaml
  qtype convert openai-evals eval.json -o app.qtype.yaml
  qtype convert api openapi.json -o tools.qtype.yaml
  qtype convert module shop/tools.py
  qtype convert xflow - --format json <workflow.json >app.qtype.yaml`,
		Args: convertArguments,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return kindNames(), cobra.ShellCompDirectiveNoFileComp
			}
			return []string{"yaml", "yml", "json", "py", "prompty", "java", "properties"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(c *cobra.Command, args []string) error {
			return v.run(c.Context(), convert.Kind(args[0]), args[1])
		},
	}
	c.Flags().StringVarP(&v.output, "output", "o", "", "write the document to `FILE`")
	v.format.AddTo(c, "format", "", "output format of diagnostics")
	c.Flags().BoolVar(&v.strict, "strict", false, "treat warnings as errors")
	return c
}

// kindNames returns the kinds that can be converted.
func kindNames() []string {
	var names []string
	for _, k := range convert.Kinds() {
		names = append(names, string(k))
	}
	return names
}

// convertArguments requires a known kind and a file.
func convertArguments(c *cobra.Command, args []string) error {
	wrong := func(format string, values ...any) error {
		return &terminal.UsageError{Command: c.CommandPath(), Reason: fmt.Sprintf(format, values...)}
	}
	kinds := textfmt.List(kindNames())
	switch {
	case len(args) == 0:
		return wrong("qtype convert needs a kind of file: %s", kinds)
	case !slices.Contains(kindNames(), args[0]):
		return wrong("unknown kind %q%s; kinds: %s", args[0], diag.DidYouMean(args[0], kindNames()), kinds)
	}
	return cli.Arguments("a kind of file", "a file: qtype convert "+args[0]+" FILE")(c, args)
}

func (v *convertCommand) run(ctx context.Context, kind convert.Kind, path string) error {
	if path != "-" && remotefs.IsSame(v.output, path) {
		return terminal.Usagef("-o %s is the file to convert: use another name", v.output)
	}
	text, evaluation, list := v.convert(ctx, kind, path)
	if v.strict {
		list = list.AsErrors()
	}
	switch { // there is nowhere to report an error of writing
	case v.format.Value == "json":
		_ = diag.JSON(v.Err, list)
	case len(list) > 0:
		_ = diag.Text(v.Err, list, v.DiagnosticOptions(v.ErrTerminal))
	}
	if text != "" {
		if err := v.WriteTo(v.output, text); err != nil {
			return err
		}
		if err := v.writeEvaluation(evaluation); err != nil {
			return err
		}
	}
	if list.Errors() > 0 {
		return cli.ErrSilent
	}
	return nil
}

// convert converts a file, or standard input for the path "-".
func (v *convertCommand) convert(ctx context.Context, kind convert.Kind, path string) (string, *document.Evaluation, diag.List) {
	if path == "-" {
		text, list := convert.Reader(ctx, kind, "standard input", v.In)
		return text, nil, list
	}
	return convert.Files(ctx, kind, path)
}

// writeEvaluation writes the evaluation of an application, and its rows, beside the document.
func (v *convertCommand) writeEvaluation(e *document.Evaluation) error {
	if e == nil {
		return nil
	}
	if v.output == "" || v.output == "-" {
		if v.format.Value != "json" {
			fmt.Fprintln(v.Err, "note: -o app.qtype.yaml also writes the evaluation, app.qtype-eval.yaml, and its rows, app.rows.jsonl")
		}
		return nil
	}
	stem := strings.TrimSuffix(strings.TrimSuffix(v.output, filepath.Ext(v.output)), ".qtype")
	if err := v.WriteTo(stem+".qtype-eval.yaml", e.YAML(filepath.Base(v.output), filepath.Base(stem)+".rows.jsonl")); err != nil {
		return err
	}
	return v.WriteTo(stem+".rows.jsonl", e.Lines())
}
