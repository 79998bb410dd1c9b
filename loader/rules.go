package loader

import "github.com/qtype-dev/qtype/spec/diag"

// Rules lists the codes that this package reports, in their order.
func Rules() []diag.Rule {
	return []diag.Rule{
		ruleUnreadable, ruleSyntax, ruleSecondDocument, ruleTag, ruleUnset, ruleVariable, ruleInclude, ruleIncludeCycle,
		ruleText, ruleLimit, ruleDuplicateKey, ruleDotEnv, ruleCatalogue,
		ruleEmpty, ruleListKind, ruleUnknownField, ruleMissingField, ruleKind, ruleUnionTag, ruleChoice,
		ruleRange, ruleNestedList, ruleOptionalMark, ruleUIHint, ruleCategories, ruleProperty,
		ruleAWSAuth, ruleAWSRole, ruleVertexAuth, ruleTokenizer, ruleInlineObject, ruleBareStep, ruleAlias,
	}
}

// The rules of reading: files, YAML, environment variables and includes.
var (
	ruleUnreadable = diag.Rule{
		Code: "QT001", Severity: diag.Error, Title: "the document cannot be read",
		Doc: "The file does not exist, is a folder or a device, or cannot be opened. Check the path and the file's permissions.",
	}
	ruleSyntax = diag.Rule{
		Code: "QT002", Severity: diag.Error, Title: "the text is not YAML",
		Doc:   "The position is where parsing failed; the cause is often before it: an unclosed quote or bracket, a tab, wrong indentation, or a colon inside unquoted text. Aliases (*name) need an anchor (&name) in the same file.",
		Wrong: "id: shop\n  description: one space too many\n",
		Right: "id: shop\ndescription: at the left edge\n",
	}
	ruleSecondDocument = diag.Rule{
		Code: "QT003", Severity: diag.Error, Title: "a file contains more than one document",
		Doc:   "A line of three dashes starts another YAML document. A file contains exactly one; move the other to a separate file.",
		Wrong: "id: shop\n---\nid: another\n",
		Right: "id: shop\n",
	}
	ruleTag = diag.Rule{
		Code: "QT004", Severity: diag.Error, Title: "a tag is unknown",
		Doc:   "A word that starts with ! is a YAML tag. The language has !include and !include_raw, and YAML's own tags such as !!str. Put a text that starts with ! in quotes.",
		Wrong: "id: shop\ndescription: !important read this\n",
		Right: "id: shop\ndescription: \"!important read this\"\n",
	}
	ruleUnset = diag.Rule{
		Code: "QT005", Severity: diag.Warning, Title: "an environment variable is not set",
		Doc:   "${NAME} is replaced by the environment variable NAME, or by a line NAME=… of the file .env in the document's folder or in the current folder. ${NAME:-text} is replaced by the text if the variable is not set. Checking a document needs no variables, so there this is a warning; running it needs all of them, so there it is an error.",
		Wrong: "id: shop\ndescription: ${QTYPE_NO_SUCH_VARIABLE}\n",
		Right: "id: shop\ndescription: ${QTYPE_NO_SUCH_VARIABLE:-a shop}\n",
	}
	ruleVariable = diag.Rule{
		Code: "QT013", Severity: diag.Error, Title: "a variable has an unknown form",
		Doc:   "${NAME} and ${NAME:-text} are replaced by environment variables. Other forms of shells and Compose, such as ${NAME:?text} and ${NAME:+text}, a variable in a default, and a ${ without its brace are errors. Other texts in braces, such as ${} and ${a:b}, stay as they are written, with a warning. $${NAME} is a $ and the value, as in QType (Python), with a warning, because $$ is an escape in Compose. Write ${DOLLAR:-$}{ for the text ${ itself, or include the text from a file by !include_raw, in which nothing is replaced.",
		Wrong: "id: shop\ndescription: ${SHOP:?set the name of the shop}\n",
		Right: "id: shop\ndescription: ${SHOP:-a shop}\n",
	}
	ruleInclude = diag.Rule{
		Code: "QT006", Severity: diag.Error, Title: "a file cannot be included",
		Doc:   "!include is replaced by the content of another YAML file, !include_raw by the text of a file. The path is relative to the folder of the file with the tag. A remote document may include only files below its own folder.",
		Wrong: "id: shop\ndescription: !include_raw no_such_file.txt\n",
		Right: "id: shop\ndescription: !include_raw notes.txt\n",
	}
	ruleIncludeCycle = diag.Rule{
		Code: "QT007", Severity: diag.Error, Title: "files include each other in a cycle",
		Doc:   "A file cannot include itself, neither directly nor through others. Remove one of the includes of the chain.",
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
		Code: "QT009", Severity: diag.Error, Title: "the document exceeds a limit",
		Doc:   "The size of files, the number of values in them, the nesting depth, the number of includes and the values that aliases add are limited, so that no document can stall the program that reads it.",
		Wrong: "- {id: small, type: Model, provider: openai, inference_params: {stop: " + tooDeepSample + "}}\n",
		Right: "- {id: small, type: Model, provider: openai, inference_params: {stop: [end]}}\n",
	}
	ruleDuplicateKey = diag.Rule{
		Code: "QT010", Severity: diag.Warning, Title: "a key is defined twice in one mapping",
		Doc:   "Only the last value is used. Remove one of the keys.",
		Wrong: "id: shop\ndescription: a shop\ndescription: a bookshop\n",
		Right: "id: shop\ndescription: a bookshop\n",
	}
	ruleDotEnv = diag.Rule{
		Code: "QT011", Severity: diag.Warning, Title: "a .env file has invalid lines",
		Doc: "A .env file has lines of the form NAME=value; a value with spaces or # needs quotes. Other lines are ignored.",
	}
	ruleCatalogue = diag.Rule{
		Code: "QT012", Severity: diag.Error, Title: "a file of models is invalid",
		Doc: "models.yaml next to a document, or the file that the environment variable QTYPE_MODELS names, has rows of the catalogue of models below the key catalogue. A row has provider and id, and what the row of `qtype models show NAME --format json` has. Its keys replace those of the built-in row of that name.",
	}
)

// tooDeepSample exceeds the nesting depth.
const tooDeepSample = "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[" +
	"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[" +
	"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[" +
	"]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]" +
	"]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]" +
	"]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
