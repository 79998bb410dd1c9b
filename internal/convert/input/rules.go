package input

import (
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// The rules. Their examples are files of the other systems.
var (
	ruleMalformed = diag.Rule{
		Code: "QT701", Severity: diag.Error, Title: "value that the other system rejects too",
		Doc: "A key is missing, a value has the wrong type, a name is used twice, or a transition leads to a state that does not exist. " +
			"The rest of the file is converted.",
		Wrong: "memory_config:\n  memory_modules:\n    - {memory_name: chat, memory_class: ChatMemoryModule, config: {n_rounds: 0}}\n",
		Right: "memory_config:\n  memory_modules:\n    - {memory_name: chat, memory_class: ChatMemoryModule, config: {n_rounds: 3}}\n",
	}
	ruleUnknown = diag.Rule{
		Code: "QT702", Severity: diag.Warning, Title: "unknown key",
		Doc:   "The key is ignored. Usually its name is misspelled.",
		Wrong: "memory_config:\n  memory_modules:\n    - {memory_name: chat, memory_class: ChatMemoryModule, config: {rounds: 3}}\n",
		Right: "memory_config:\n  memory_modules:\n    - {memory_name: chat, memory_class: ChatMemoryModule, config: {n_rounds: 3}}\n",
	}
	ruleUnsupported = diag.Rule{
		Code: "QT703", Severity: diag.Error, Title: "feature without a counterpart",
		Doc: "The language has no counterpart, or the converter knows none, so the document behaves differently from the file. " +
			"The document is written nevertheless, with a TODO comment in place of the part.",
		Wrong: "memory_config:\n  memory_modules:\n    - {memory_name: notes, memory_class: MemTreeModule}\n",
		Right: "memory_config:\n  memory_modules:\n    - {memory_name: notes, memory_class: ChatMemoryModule}\n",
	}
	ruleJQ = diag.Rule{
		Code: "QT704", Severity: diag.Error, Title: "jq expression that cannot be translated",
		Doc: "An expression is translated only if the translation gives the same result for every input. Otherwise a value becomes null and a condition false; " +
			"a comment next to it contains the original.",
		Wrong: "- name: Pick\n  type: switch\n  dataConditions: [{condition: '${ .items | group_by(.kind) | length > 2 }', transition: Done}]\n  defaultCondition: {end: true}\n" +
			"- {name: Done, type: inject, data: {status: done}, end: true}\n",
		Right: "- name: Pick\n  type: switch\n  dataConditions: [{condition: '${ .items | length > 2 }', transition: Done}]\n  defaultCondition: {end: true}\n" +
			"- {name: Done, type: inject, data: {status: done}, end: true}\n",
	}
	ruleIgnored = diag.Rule{
		Code: "QT705", Severity: diag.Warning, Title: "setting ignored without effect on the answers",
		Doc:   "It does not change the answers of the application, for example a setting of an engine, or a limit of a schema that the description now states in words for the model.",
		Wrong: "memory: {memoryId: s1, memoryType: message_window, maxMessages: 10, maxTokens: 500}\n",
		Right: "memory: {memoryId: s1, memoryType: message_window, maxMessages: 10}\n",
	}
	ruleAssumed = diag.Rule{
		Code: "QT706", Severity: diag.Warning, Title: "value that the file leaves open",
		Doc:   "The document needs a value that the file does not give, or gives in another form: check the value that was chosen.",
		Wrong: "memory: {memoryId: s1}\n",
		Right: "memory: {memoryId: s1, maxMessages: 10}\n",
	}
)

// Rules lists the diagnostic codes of the converters in order.
func Rules() []diag.Rule {
	return []diag.Rule{ruleMalformed, ruleUnknown, ruleUnsupported, ruleJQ, ruleIgnored, ruleAssumed}
}

// MalformedAt reports a value that the other system would reject.
func MalformedAt(at source.Span, format string, args ...any) diag.Diagnostic {
	return ruleMalformed.At(at, format, args...)
}

// UnknownAt reports a key that the converter does not know.
func UnknownAt(at source.Span, format string, args ...any) diag.Diagnostic {
	return ruleUnknown.At(at, format, args...)
}

// UnsupportedAt reports something that has no counterpart in the document.
func UnsupportedAt(at source.Span, format string, args ...any) diag.Diagnostic {
	return ruleUnsupported.At(at, format, args...)
}

// UntranslatableAt reports a jq expression that cannot be translated.
func UntranslatableAt(at source.Span, format string, args ...any) diag.Diagnostic {
	return ruleJQ.At(at, format, args...)
}

// ignoredAt reports something that is left out without effect on the answers.
func ignoredAt(at source.Span, format string, args ...any) diag.Diagnostic {
	return ruleIgnored.At(at, format, args...)
}

// AssumedAt reports a value that the file leaves open.
func AssumedAt(at source.Span, format string, args ...any) diag.Diagnostic {
	return ruleAssumed.At(at, format, args...)
}
