package apptest

import "github.com/qtype-dev/qtype/spec/diag"

// The rules; package testrun reports the ones about runs. TestRules_Examples runs their examples.
var (
	ruleUnknown = diag.Rule{
		Code: "QT801", Severity: diag.Error, Title: "unknown name in a test",
		Doc: "A test refers to flows, inputs, models, tools and memories of its application by id, and to the application by its path. " +
			"The names of tests are unique.",
		Wrong: "tests:\n  - name: It answers\n    turns: [{inputs: {questoin: Hello}}]\n",
		Right: "tests:\n  - name: It answers\n    turns: [{inputs: {question: Hello}}]\n",
	}
	ruleInvalid = diag.Rule{
		Code: "QT802", Severity: diag.Error, Title: "a test that cannot be run",
		Doc: "A turn has either input, for the only required input of the flow, or inputs by id, and all that are required. A row that fails has no outputs to check. " +
			"The mock of a tool has a result or an error. Patterns are regular expressions (RE2).",
		Wrong: "tests:\n  - name: It fails\n    turns: [{input: Hello, fails: 'no answer', expect: ['answer.text == \"\"']}]\n",
		Right: "tests:\n  - name: It answers\n    turns: [{input: Hello, expect: ['answer.text != \"\"']}]\n",
	}
	Expectation = diag.Rule{
		Code: "QT803", Severity: diag.Error, Title: "an expectation is not met",
		Doc: "The result of the test differs from what it expects: a condition is false, the window of a memory or the request to a model is different, " +
			"or the number of rows is. The diagnostic shows the values.",
		Wrong: "tests:\n  - name: It greets\n    turns: [{input: Hello, expect: ['answer.text contains \"Goodbye\"']}]\n",
		Right: "tests:\n  - name: It greets\n    turns: [{input: Hello, expect: ['answer.text contains \"Hello\"']}]\n",
	}
	Failed = diag.Rule{
		Code: "QT804", Severity: diag.Error, Title: "a turn failed unexpectedly, or did not fail",
		Doc: "The row of the flow failed although the test does not expect it, or with an error that fails does not match, or it did not fail although the test expects it. " +
			"Models without a mock and tools that would call a server fail, too: tests are offline. " +
			"So do steps and tools that would read or write files, query databases or start programs, unless the test has a mock of the tool, or lists the step or tool under allow.",
		Wrong: "tests:\n  - name: It fails\n    turns: [{input: Hello, fails: 'no answer'}]\n",
		Right: "models: [{id: writer, rules: [{error: no answer}]}]\ntests:\n  - name: It fails\n    turns: [{input: Hello, fails: 'no answer'}]\n",
	}
	Changed = diag.Rule{
		Code: "QT805", Severity: diag.Error, Title: "a call is not as recorded",
		Doc: "The test file declares recordings, and a model, a server or a tool is called with a request that the recordings of the test do not have, " +
			"such as after a change of a prompt. The difference from the most similar recording follows. `qtype test --record` records the calls again.",
		Wrong: "recordings: none.recordings.json\ntests:\n  - name: It answers\n    turns: [{input: Hello}]\n",
		Right: "recordings: none.recordings.json\nmodels: [{id: writer, rules: [{text: Hello}]}]\ntests:\n  - name: It answers\n    turns: [{input: Hello}]\n",
	}
	Stale = diag.Rule{
		Code: "QT806", Severity: diag.Warning, Title: "a recording that no test uses",
		Doc:   "The file of recordings has calls that the tests do not make any more. `qtype test --remove-stale` removes them.",
		Wrong: "recordings: stale.recordings.json\nmodels: [{id: writer, rules: [{text: Hello}]}]\ntests:\n  - name: It answers\n    turns: [{input: Hello}]\n",
		Right: "models: [{id: writer, rules: [{text: Hello}]}]\ntests:\n  - name: It answers\n    turns: [{input: Hello}]\n",
	}
	ruleMock = diag.Rule{
		Code: "QT807", Severity: diag.Warning, Title: "a mock that differs from its tool",
		Doc: "The result of a mock lacks an output of its tool, has another one, or a value of another type, so that the test is not what happens with the tool. " +
			"A step fails if an output that is not optional is missing.",
		Wrong: "tools: [{id: find_order, result: {statsu: sent}}]\ntests:\n  - name: It answers\n    flow: talk\n    turns: [{input: Hello}]\n",
		Right: "tools: [{id: find_order, result: {status: sent}}]\ntests:\n  - name: It answers\n    flow: talk\n    turns: [{input: Hello}]\n",
	}
)

// Rules returns the rules in the order of their codes.
func Rules() []diag.Rule {
	return []diag.Rule{ruleUnknown, ruleInvalid, Expectation, Failed, Changed, Stale, ruleMock}
}
