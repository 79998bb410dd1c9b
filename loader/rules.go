package loader

import (
	"embed"

	"github.com/qtype-dev/qtype/internal/ruletext"
	"github.com/qtype-dev/qtype/spec/diag"
)

//go:embed rules/*.md
var texts embed.FS

// Rules lists the codes that this package reports, in their order.
func Rules() []diag.Rule {
	return ruletext.Must(texts,
		ruleUnreadable, ruleSyntax, ruleSecondDocument, ruleTag, ruleUnset, ruleVariable, ruleInclude, ruleIncludeCycle,
		ruleText, ruleLimit, ruleDuplicateKey, ruleDotEnv, ruleCatalogue,
		ruleEmpty, ruleListKind, ruleUnknownField, ruleMissingField, ruleKind, ruleUnionTag, ruleChoice,
		ruleRange, ruleNestedList, ruleOptionalMark, ruleUIHint, ruleCategories, ruleProperty,
		ruleAWSAuth, ruleAWSRole, ruleVertexAuth, ruleTokenizer, ruleInlineObject, ruleBareStep, ruleAlias,
	)
}

// The rules of reading: files, YAML, environment variables and includes.
var (
	ruleUnreadable     = diag.Rule{Code: "QT001", Severity: diag.Error}
	ruleSyntax         = diag.Rule{Code: "QT002", Severity: diag.Error}
	ruleSecondDocument = diag.Rule{Code: "QT003", Severity: diag.Error}
	ruleTag            = diag.Rule{Code: "QT004", Severity: diag.Error}
	ruleUnset          = diag.Rule{Code: "QT005", Severity: diag.Warning}
	ruleVariable       = diag.Rule{Code: "QT013", Severity: diag.Error}
	ruleInclude        = diag.Rule{Code: "QT006", Severity: diag.Error}
	ruleIncludeCycle   = diag.Rule{Code: "QT007", Severity: diag.Error}
	ruleText           = diag.Rule{Code: "QT008", Severity: diag.Error}
	ruleLimit          = diag.Rule{Code: "QT009", Severity: diag.Error}
	ruleDuplicateKey   = diag.Rule{Code: "QT010", Severity: diag.Warning}
	ruleDotEnv         = diag.Rule{Code: "QT011", Severity: diag.Warning}
	ruleCatalogue      = diag.Rule{Code: "QT012", Severity: diag.Error}
)

// The rules of shape: which keys an entity has, and which values they take. Package
// validate resolves the names of types and the targets of references later.
var (
	ruleEmpty        = diag.Rule{Code: "QT101", Severity: diag.Error}
	ruleListKind     = diag.Rule{Code: "QT102", Severity: diag.Error}
	ruleUnknownField = diag.Rule{Code: "QT103", Severity: diag.Error}
	ruleMissingField = diag.Rule{Code: "QT104", Severity: diag.Error}
	ruleKind         = diag.Rule{Code: "QT105", Severity: diag.Error}
	ruleUnionTag     = diag.Rule{Code: "QT106", Severity: diag.Error}
	ruleChoice       = diag.Rule{Code: "QT107", Severity: diag.Error}
	ruleRange        = diag.Rule{Code: "QT108", Severity: diag.Error}
	ruleNestedList   = diag.Rule{Code: "QT111", Severity: diag.Error}
	ruleOptionalMark = diag.Rule{Code: "QT112", Severity: diag.Error}
	ruleUIHint       = diag.Rule{Code: "QT113", Severity: diag.Error}
	ruleCategories   = diag.Rule{Code: "QT115", Severity: diag.Error}
	ruleProperty     = diag.Rule{Code: "QT116", Severity: diag.Error}
	ruleAWSAuth      = diag.Rule{Code: "QT120", Severity: diag.Error}
	ruleAWSRole      = diag.Rule{Code: "QT121", Severity: diag.Error}
	ruleVertexAuth   = diag.Rule{Code: "QT122", Severity: diag.Error}
	ruleTokenizer    = diag.Rule{Code: "QT123", Severity: diag.Error}
	ruleInlineObject = diag.Rule{Code: "QT130", Severity: diag.Error}
	ruleBareStep     = diag.Rule{Code: "QT131", Severity: diag.Error}
	ruleAlias        = diag.Rule{Code: "QT132", Severity: diag.Warning}
)
