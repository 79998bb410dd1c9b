// Command qtype checks and runs applications that are declared in YAML. It is the program of
// releases, packages and images, with the parts of the core and all others.
//
// Results go to standard output, everything else to standard error. Exit status:
// 0 success, 1 the document or the run failed or was interrupted, 2 the command
// line was wrong, 3 the run waits for approvals (qtype run --suspend).
package main

import (
	"os"

	"github.com/qtype-dev/qtype/distribution"
	"github.com/qtype-dev/qtype/distribution/buckets"
	memoryservers "github.com/qtype-dev/qtype/distribution/memory/servers"
	"github.com/qtype-dev/qtype/distribution/temporal"
	"github.com/qtype-dev/qtype/internal/command"
)

func main() {
	memoryservers.Quiet()
	os.Exit(command.Main(table()))
}

// table returns what the program is made of.
func table() command.Parts {
	return command.Parts{Parts: distribution.Parts(), Telemetry: distribution.Telemetry(), Engine: temporal.Engine{Buckets: buckets.All()}, Converters: distribution.Converters()}
}
