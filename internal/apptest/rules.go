package apptest

import "github.com/qtype-dev/qtype/spec/diag"

// The rules. Their examples are tests of the application that TestRules makes.
var (
	ruleUnknown = diag.Rule{
		Code: "QT801", Severity: diag.Error, Title: "a test names something that is not there",
		Doc: "A test names flows, inputs, models, tools and memories of its application by their ids, and the application's file by its path. " +
			"Each test has a name of its own.",
		Wrong: "tests:\n  - name: It answers\n    turns: [{inputs: {questoin: Hello}}]\n",
		Right: "tests:\n  - name: It answers\n    turns: [{inputs: {question: Hello}}]\n",
	}
	ruleUnclear = diag.Rule{
		Code: "QT802", Severity: diag.Error, Title: "a test that cannot be run as it is written",
		Doc: "A turn has input, for the one input that a flow must be given, or inputs by their ids. A row that fails has no outputs to expect anything of. " +
			"A tool's double has a result or an error, and patterns are regular expressions (RE2).",
		Wrong: "tests:\n  - name: It fails\n    turns: [{input: Hello, fails: 'no answer', expect: ['answer.text == \"\"']}]\n",
		Right: "tests:\n  - name: It answers\n    turns: [{input: Hello, expect: ['answer.text != \"\"']}]\n",
	}
	ruleUnmet = diag.Rule{
		Code: "QT803", Severity: diag.Error, Title: "an expectation that is not met",
		Doc: "The test was run, and what came out is not what the test expects: a condition is false, a memory's window or what a model was sent is different, " +
			"or other rows came out. The values are shown.",
		Wrong: "tests:\n  - name: It greets\n    turns: [{input: Hello, expect: ['answer.text contains \"Goodbye\"']}]\n",
		Right: "tests:\n  - name: It greets\n    turns: [{input: Hello, expect: ['answer.text contains \"Hello\"']}]\n",
	}
	ruleFailed = diag.Rule{
		Code: "QT804", Severity: diag.Error, Title: "a turn that failed, or did not",
		Doc: "The flow's row failed where the test expects none to, or with another error than fails describes, or none failed where the test expects it. " +
			"A model without a mock and a tool that would call a server fail, too: a test asks nobody outside.",
		Wrong: "tests:\n  - name: It fails\n    turns: [{input: Hello, fails: 'no answer'}]\n",
		Right: "models: [{id: writer, rules: [{error: no answer}]}]\ntests:\n  - name: It fails\n    turns: [{input: Hello, fails: 'no answer'}]\n",
	}
)

// Rules are the codes of tests, in order.
func Rules() []diag.Rule { return []diag.Rule{ruleUnknown, ruleUnclear, ruleUnmet, ruleFailed} }
