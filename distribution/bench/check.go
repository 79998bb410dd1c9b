package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/spec/diag"
)

// checkFile is the workload W4: it checks a document repeatedly in one process, and
// prints the cost of one check and the number of diagnostics.
func checkFile(arguments []string) error {
	passes, err := strconv.Atoi(arguments[1])
	if err != nil || passes < 1 {
		return fmt.Errorf("%q is not a positive number of passes", arguments[1])
	}
	return measure(passes, func() string {
		errors, warnings := 0, 0
		for range passes {
			_, diagnostics := qtype.Check(context.Background(), arguments[0])
			errors, warnings = countDiagnostics(diagnostics)
		}
		return fmt.Sprintf("errors=%d warnings=%d", errors, warnings)
	})
}

// countDiagnostics counts diagnostics by severity.
func countDiagnostics(diagnostics diag.List) (errors, warnings int) {
	for _, f := range diagnostics {
		if f.Severity == diag.Error {
			errors++
			continue
		}
		warnings++
	}
	return errors, warnings
}
