package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/spec/diag"
)

// checkFile is the workload W4: a document is read and checked over and over in
// one process. It prints what one check costs, and its findings.
func checkFile(arguments []string) error {
	passes, err := strconv.Atoi(arguments[1])
	if err != nil || passes < 1 {
		return fmt.Errorf("%q is not a positive number of passes", arguments[1])
	}
	return measure(passes, func() string {
		errors, warnings := 0, 0
		for range passes {
			_, faults := qtype.Check(context.Background(), arguments[0])
			errors, warnings = findings(faults)
		}
		return fmt.Sprintf("errors=%d warnings=%d", errors, warnings)
	})
}

// findings counts faults by their weight.
func findings(faults diag.List) (errors, warnings int) {
	for _, f := range faults {
		if f.Severity == diag.Error {
			errors++
			continue
		}
		warnings++
	}
	return errors, warnings
}
