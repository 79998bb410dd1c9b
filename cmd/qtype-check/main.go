// Command qtype-check has the commands of qtype that run nothing: it checks, formats, compares,
// converts and draws documents, and serves editors. It is a quarter of the size of qtype and
// starts faster, for editors, hooks and checks of changes.
//
// Results go to standard output, everything else to standard error. Exit status:
// 0 success, 1 a document has errors or the command was interrupted, 2 the command line was wrong.
package main

import (
	"context"
	"os"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/author"
	"github.com/qtype-dev/qtype/internal/terminal"
)

func main() { os.Exit(start()) }

// start runs the command line of this process and returns its exit status.
func start() int {
	cli.RelaxGC()
	ctx, stop := cli.WithSignals(context.Background())
	defer stop()
	return cli.ExitStatus(program().Execute(ctx, &cli.Streams{Streams: terminal.Standard()}, os.Args[1:]))
}

// program returns the program with its commands.
func program() *cli.Program {
	return &cli.Program{
		Name: "qtype-check", Short: "Check LLM applications that are declared in YAML",
		Example: `  qtype-check validate app.qtype.yaml
  qtype-check fmt --check .
  qtype-check lsp`,
		Commands: append(author.Commands(), cli.Command{Name: "version", Make: cli.NewVersion("qtype-check")}),
		Missing:  "it runs nothing: use qtype, which has all commands",
	}
}
