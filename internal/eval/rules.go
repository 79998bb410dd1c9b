package eval

import "github.com/qtype-dev/qtype/spec/diag"

// The rules. TestRules_Examples runs their examples.
var (
	ruleUnknown = diag.Rule{
		Code: "QT811", Severity: diag.Error, Title: "unknown name in an evaluation",
		Doc: "An evaluation refers to flows, outputs, inputs, models and steps of its application by id, to types of metrics by name, and to documents by path. " +
			"The ids of metrics and of variants are unique.",
		Wrong: "metrics: [{type: exactly}]\n",
		Right: "metrics: [{type: exact}]\n",
	}
	ruleInvalid = diag.Rule{
		Code: "QT812", Severity: diag.Error, Title: "an evaluation that cannot be run",
		Doc: "Each type of metric reads certain keys and requires some of them; others are rejected. Patterns are regular expressions (RE2), schemas JSON schemas. " +
			"A flow with several outputs needs the key output.",
		Wrong: "metrics: [{type: regexp, pattern: '('}]\n",
		Right: "metrics: [{type: regexp, pattern: '^Hello'}]\n",
	}
	ruleVerbatim = diag.Rule{
		Code: "QT813", Severity: diag.Warning, Title: "placeholder in a rubric",
		Doc:   "The judge reads a rubric as it is written, and beside it the inputs of the row, the output and the expected value. Braces have no meaning in it.",
		Wrong: "metrics: [{type: judge, model: writer, rubric: 'Does {{answer}} greet?'}]\n",
		Right: "metrics: [{type: judge, model: writer, rubric: Does the output greet?}]\n",
	}
)

// Rules returns the rules in the order of their codes.
func Rules() []diag.Rule { return []diag.Rule{ruleUnknown, ruleInvalid, ruleVerbatim} }
