package loader

import "github.com/qtype-dev/qtype/spec/diag"

// Rules lists the codes that this package reports, in their order.
func Rules() []diag.Rule {
	return []diag.Rule{
		ruleUnreadable, ruleSyntax, ruleSecondDocument, ruleTag, ruleUnset, ruleInclude, ruleIncludeCycle,
		ruleText, ruleLimit, ruleDuplicateKey, ruleDotEnv,
		ruleEmpty, ruleListKind, ruleUnknownField, ruleMissingField, ruleKind, ruleUnionTag, ruleChoice,
		ruleRange, ruleNestedList, ruleOptionalMark, ruleUIHint, ruleCategories, ruleProperty,
		ruleAWSAuth, ruleAWSRole, ruleVertexAuth, ruleInlineObject, ruleBareStep, ruleAlias,
	}
}

// The rules of reading: files, YAML, environment variables and includes
// (reference semantics.md 1; QT009 to QT011 are ours).
var (
	ruleUnreadable = diag.Rule{
		Code: "QT001", Severity: diag.Error, Title: "the document cannot be read",
		Doc: "The file is not there, is a folder or a device, or may not be read. Check the path and the file's permissions.",
	}
	ruleSyntax = diag.Rule{
		Code: "QT002", Severity: diag.Error, Title: "the text is not YAML",
		Doc:   "The place is where reading had to stop; the cause often stands a little before it: a quote or bracket that is not closed, a tab or a wrong indentation, a colon inside unquoted text. Aliases (*name) need an anchor (&name) in the same file.",
		Wrong: "id: shop\n  description: one space too many\n",
		Right: "id: shop\ndescription: at the left edge\n",
	}
	ruleSecondDocument = diag.Rule{
		Code: "QT003", Severity: diag.Error, Title: "a file holds more than one document",
		Doc:   "A line of three dashes starts another YAML document. A file holds exactly one; put the other into a file of its own.",
		Wrong: "id: shop\n---\nid: another\n",
		Right: "id: shop\n",
	}
	ruleTag = diag.Rule{
		Code: "QT004", Severity: diag.Error, Title: "a tag is unknown",
		Doc:   "A word that starts with ! is a YAML tag. The language knows !include and !include_raw, and YAML's own tags such as !!str. Put a text that starts with ! in quotes.",
		Wrong: "id: shop\ndescription: !important read this\n",
		Right: "id: shop\ndescription: \"!important read this\"\n",
	}
	ruleUnset = diag.Rule{
		Code: "QT005", Severity: diag.Warning, Title: "an environment variable is not set",
		Doc:   "${NAME} stands for the environment variable NAME, or for a line NAME=… of a file .env beside the document or in the current folder. ${NAME:-text} stands for the text where the variable is not set. To check a document no variable is needed, so this is a warning there; to run it every one is, so there it is an error.",
		Wrong: "id: shop\ndescription: ${QTYPE_NO_SUCH_VARIABLE}\n",
		Right: "id: shop\ndescription: ${QTYPE_NO_SUCH_VARIABLE:-a shop}\n",
	}
	ruleInclude = diag.Rule{
		Code: "QT006", Severity: diag.Error, Title: "a file cannot be included",
		Doc:   "!include puts another YAML file's content in its place, !include_raw a file's text. The path counts from the folder of the file that holds the tag. A document that came from elsewhere may include only what lies under its own folder.",
		Wrong: "id: shop\ndescription: !include_raw no_such_file.txt\n",
		Right: "id: shop\ndescription: !include_raw notes.txt\n",
	}
	ruleIncludeCycle = diag.Rule{
		Code: "QT007", Severity: diag.Error, Title: "files include each other in a circle",
		Doc:   "A file cannot include itself, neither directly nor through others. Take out one of the includes of the chain.",
		Wrong: "id: shop\nreferences:\n  - !include app.qtype.yaml\n",
		Right: "id: shop\nreferences:\n  - !include models.yaml\n",
	}
	ruleText = diag.Rule{
		Code: "QT008", Severity: diag.Error, Title: "a file is not UTF-8 text",
		Doc:   "Documents and the files that they include as text are read as UTF-8. Save the file in that encoding; an image or another binary file cannot be included.",
		Wrong: "id: shop\ndescription: !include_raw latin1.txt\n",
		Right: "id: shop\ndescription: !include_raw notes.txt\n",
	}
	ruleLimit = diag.Rule{
		Code: "QT009", Severity: diag.Error, Title: "the document is larger than a document may be",
		Doc:   "The size of files, the depth of nesting, the number of includes and what aliases may add are limited, so that no document can stall the program that reads it.",
		Wrong: "- {id: small, type: Model, provider: openai, inference_params: {stop: " + tooDeepSample + "}}\n",
		Right: "- {id: small, type: Model, provider: openai, inference_params: {stop: [end]}}\n",
	}
	ruleDuplicateKey = diag.Rule{
		Code: "QT010", Severity: diag.Warning, Title: "a key stands twice in one mapping",
		Doc:   "Only the last one counts; what the first one says is lost. Take one of them out.",
		Wrong: "id: shop\ndescription: a shop\ndescription: a bookshop\n",
		Right: "id: shop\ndescription: a bookshop\n",
	}
	ruleDotEnv = diag.Rule{
		Code: "QT011", Severity: diag.Warning, Title: "a .env file has lines that are not understood",
		Doc: "A .env file holds lines of the form NAME=value; a value with spaces or # stands in quotes. Other lines are left out.",
	}
)

// tooDeepSample is nested further than any document needs to be.
const tooDeepSample = "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[" +
	"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[" +
	"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[" +
	"]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]" +
	"]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]" +
	"]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
