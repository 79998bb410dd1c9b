package qtype

import (
	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/lint"
)

// FileKinds returns the kinds of files other than documents that lint can check: tests and
// evaluations, with their applications. Nothing is run.
func FileKinds(opts ...Option) []*lint.Kind { return authoring.FileKinds(optionsOf(opts).check) }
