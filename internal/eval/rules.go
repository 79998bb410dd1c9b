package eval

import (
	"embed"

	"github.com/qtype-dev/qtype/internal/ruletext"
	"github.com/qtype-dev/qtype/spec/diag"
)

//go:embed rules/*.md
var texts embed.FS

// The rules. TestRules_Examples runs their examples.
var (
	ruleUnknown  = diag.Rule{Code: "QT811", Severity: diag.Error}
	ruleInvalid  = diag.Rule{Code: "QT812", Severity: diag.Error}
	ruleVerbatim = diag.Rule{Code: "QT813", Severity: diag.Warning}
)

// Rules returns the rules in the order of their codes.
func Rules() []diag.Rule { return ruletext.Must(texts, ruleUnknown, ruleInvalid, ruleVerbatim) }
