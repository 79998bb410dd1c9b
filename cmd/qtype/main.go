// Command qtype checks and runs applications that are declared in YAML. It has the parts of the
// core; that of the module distribution has all.
//
// Results go to standard output, everything else to standard error. Exit status:
// 0 success, 1 the document or the run failed or was interrupted, 2 the command
// line was wrong, 3 the run waits for approvals (qtype run --suspend).
package main

import (
	"os"

	"github.com/qtype-dev/qtype/internal/command"
)

func main() { os.Exit(command.Main(command.Core())) }
