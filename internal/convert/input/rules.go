package input

import (
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// Problem is a kind of diagnostic of the converters.
type Problem int

// The problems.
const (
	Malformed      Problem = iota // the other system would reject the value
	UnknownKey                    // the converter does not know the key
	Unsupported                   // there is no counterpart, so the document behaves differently
	Untranslatable                // a jq expression cannot be translated
	Ignored                       // a part is left out without effect on the answers
	Assumed                       // the file leaves a value open
)

// At returns a diagnostic of the problem. The message is formatted as by fmt.Sprintf.
func (p Problem) At(at source.Span, format string, args ...any) diag.Diagnostic {
	return Rules()[p].At(at, format, args...)
}

// Rules lists the diagnostic codes of the converters in order. Their examples are
// files of the other systems.
func Rules() []diag.Rule {
	return []diag.Rule{
		Malformed: {
			Code: "QT701", Severity: diag.Error, Title: "value that the other system rejects too",
			Doc: "A key is missing, a value has the wrong type, a name is used twice, or a transition leads to a state that does not exist. " +
				"The rest of the file is converted.",
			Wrong: "memory_config:\n  memory_modules:\n    - {memory_name: chat, memory_class: ChatMemoryModule, config: {n_rounds: 0}}\n",
			Right: "memory_config:\n  memory_modules:\n    - {memory_name: chat, memory_class: ChatMemoryModule, config: {n_rounds: 3}}\n",
		},
		UnknownKey: {
			Code: "QT702", Severity: diag.Warning, Title: "unknown key",
			Doc:   "The key is ignored. Usually its name is misspelled.",
			Wrong: "memory_config:\n  memory_modules:\n    - {memory_name: chat, memory_class: ChatMemoryModule, config: {rounds: 3}}\n",
			Right: "memory_config:\n  memory_modules:\n    - {memory_name: chat, memory_class: ChatMemoryModule, config: {n_rounds: 3}}\n",
		},
		Unsupported: {
			Code: "QT703", Severity: diag.Error, Title: "feature without a counterpart",
			Doc: "The language has no counterpart, or the converter knows none, so the document behaves differently from the file. " +
				"The document is written nevertheless, with a TODO comment in place of the part.",
			Wrong: "memory_config:\n  memory_modules:\n    - {memory_name: notes, memory_class: MemTreeModule}\n",
			Right: "memory_config:\n  memory_modules:\n    - {memory_name: notes, memory_class: ChatMemoryModule}\n",
		},
		Untranslatable: {
			Code: "QT704", Severity: diag.Error, Title: "jq expression that cannot be translated",
			Doc: "An expression is translated only if the translation gives the same result for every input. Otherwise a value becomes null and a condition false; " +
				"a comment next to it contains the original.",
			Wrong: "- name: Pick\n  type: switch\n  dataConditions: [{condition: '${ .items | group_by(.kind) | length > 2 }', transition: Done}]\n  defaultCondition: {end: true}\n" +
				"- {name: Done, type: inject, data: {status: done}, end: true}\n",
			Right: "- name: Pick\n  type: switch\n  dataConditions: [{condition: '${ .items | length > 2 }', transition: Done}]\n  defaultCondition: {end: true}\n" +
				"- {name: Done, type: inject, data: {status: done}, end: true}\n",
		},
		Ignored: {
			Code: "QT705", Severity: diag.Warning, Title: "setting ignored without effect on the answers",
			Doc:   "It does not change the answers of the application, for example a setting of an engine, or a limit of a schema that the description now states in words for the model.",
			Wrong: "memory: {memoryId: s1, memoryType: message_window, maxMessages: 10, maxTokens: 500}\n",
			Right: "memory: {memoryId: s1, memoryType: message_window, maxMessages: 10}\n",
		},
		Assumed: {
			Code: "QT706", Severity: diag.Warning, Title: "value that the file leaves open",
			Doc:   "The document needs a value that the file does not give, or gives in another form: check the value that was chosen.",
			Wrong: "memory: {memoryId: s1}\n",
			Right: "memory: {memoryId: s1, maxMessages: 10}\n",
		},
	}
}
