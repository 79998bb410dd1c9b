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

// The rules of shape: which keys an entity has, and which values they take. Package
// validate resolves the names of types and the targets of references later.
var (
	ruleEmpty = diag.Rule{
		Code: "QT101", Severity: diag.Error, Title: "the document is neither a mapping nor a list",
		Doc:   "A document is an application, a mapping with an id, or a list of auths, models, tools, types or variables. An empty file is neither. Files of some other systems are recognized, with the command that converts them.",
		Wrong: "# nothing but a comment\n",
		Right: "id: shop\n",
	}
	ruleListKind = diag.Rule{
		Code: "QT102", Severity: diag.Error, Title: "a list document contains an entity that is not allowed in lists",
		Doc:   "A list document contains entries of one kind: auths, models, tools, types or variables. Flows, steps, memories and indexes are part of an application.",
		Wrong: "- {id: small, type: Model, provider: openai}\n- {id: question, type: text}\n",
		Right: "- {id: small, type: Model, provider: openai}\n- {id: large, type: Model, provider: openai}\n",
	}
	ruleUnknownField = diag.Rule{
		Code: "QT103", Severity: diag.Error, Title: "a key is unknown",
		Doc:   "Every key of a document has a meaning; an unknown one is mostly misspelled. Only free mappings such as args and inference_params accept any key. Inside a reference and inside cache_config, batch_config and concurrency_config it is a warning.",
		Wrong: "id: shop\nmemories:\n  - id: chat_memory\n    token_limits: 50000\n",
		Right: "id: shop\nmemories:\n  - id: chat_memory\n    token_limit: 50000\n",
	}
	ruleMissingField = diag.Rule{
		Code: "QT104", Severity: diag.Error, Title: "a key is missing",
		Doc:   "The key is required and has no default.",
		Wrong: "id: shop\nmemories:\n  - token_limit: 50000\n",
		Right: "id: shop\nmemories:\n  - id: chat_memory\n    token_limit: 50000\n",
	}
	ruleKind = diag.Rule{
		Code: "QT105", Severity: diag.Error, Title: "a value is of the wrong kind",
		Doc:   "For example, the value is a number but the key needs a text, or a text but the key needs a list. YAML reads 42, 010 and yes as numbers and booleans: put them in quotes to make them texts.",
		Wrong: "id: 42\n",
		Right: "id: \"42\"\n",
	}
	ruleUnionTag = diag.Rule{
		Code: "QT106", Severity: diag.Error, Title: "the type of an entity is missing or unknown",
		Doc:   "The key type selects the kind of a step, tool, model, index, feedback or secret manager.",
		Wrong: "id: shop\nflows:\n  - id: main\n    steps:\n      - {id: ask, type: LLMInferense, model: small}\n",
		Right: "id: shop\nflows:\n  - id: main\n    steps:\n      - {id: ask, type: LLMInference, model: small}\n",
	}
	ruleChoice = diag.Rule{
		Code: "QT107", Severity: diag.Error, Title: "a value is not one of the allowed ones",
		Doc:   "The key accepts only certain words, which are case-sensitive.",
		Wrong: "- {id: small, type: Model, provider: opneai}\n",
		Right: "- {id: small, type: Model, provider: openai}\n",
	}
	ruleRange = diag.Rule{
		Code: "QT108", Severity: diag.Error, Title: "a number is too small or too large",
		Doc:   "The number is outside of the allowed range. .nan and .inf are outside of every range. In a retry, max_delay is at least initial_delay.",
		Wrong: "id: shop\nmemories:\n  - {id: chat_memory, token_limit: 0}\n",
		Right: "id: shop\nmemories:\n  - {id: chat_memory, token_limit: 50000}\n",
	}
	ruleNestedList = diag.Rule{
		Code: "QT111", Severity: diag.Error, Title: "a variable is a list of lists",
		Doc:   "A variable is a value or a list of values. Wrap the inner list in a custom type, whose properties may be lists of any depth.",
		Wrong: "- {id: rows, type: \"list[list[text]]\"}\n",
		Right: "- {id: rows, type: \"list[text]\"}\n",
	}
	ruleOptionalMark = diag.Rule{
		Code: "QT112", Severity: diag.Error, Title: "a type has a misplaced question mark",
		Doc:   "The type of a variable has at most one question mark, at the end: list[text]? is a list or null.",
		Wrong: "- {id: names, type: \"list[text?]\"}\n",
		Right: "- {id: names, type: \"list[text]?\"}\n",
	}
	ruleUIHint = diag.Rule{
		Code: "QT113", Severity: diag.Error, Title: "a ui hint does not fit the variable's type",
		Doc:   "ui.widget selects the input element of a text, so the variable must be of type text; ui.accept limits the accepted files, so it must be of type file.",
		Wrong: "- {id: age, type: int, ui: {widget: textarea}}\n",
		Right: "- {id: story, type: text, ui: {widget: textarea}}\n",
	}
	ruleCategories = diag.Rule{
		Code: "QT115", Severity: diag.Error, Title: "category feedback has no labels",
		Doc:   "At least one category is required, and none may be blank.",
		Wrong: "id: shop\nflows:\n  - {id: main, feedback: {type: category, categories: []}}\n",
		Right: "id: shop\nflows:\n  - {id: main, feedback: {type: category, categories: [helpful, wrong]}}\n",
	}
	ruleProperty = diag.Rule{
		Code: "QT116", Severity: diag.Error, Title: "invalid name of a property",
		Doc:   "A property of a custom type needs a name that does not start with an underscore.",
		Wrong: "- {id: Order, properties: {_number: int}}\n",
		Right: "- {id: Order, properties: {number: int}}\n",
	}
	ruleAWSAuth = diag.Rule{
		Code: "QT120", Severity: diag.Error, Title: "AWS credentials name no identity",
		Doc:   "Give access_key_id with secret_access_key, a profile_name, a role_arn, or at least a region, which selects the identity of the host.",
		Wrong: "- {id: cloud, type: aws}\n",
		Right: "- {id: cloud, type: aws, profile_name: work}\n",
	}
	ruleAWSRole = diag.Rule{
		Code: "QT121", Severity: diag.Error, Title: "an AWS role has no identity that assumes it",
		Doc:   "An identity assumes the role: add access_key_id with secret_access_key, or a profile_name, to role_arn.",
		Wrong: "- {id: cloud, type: aws, role_arn: \"arn:aws:iam::000000000000:role/reader\"}\n",
		Right: "- {id: cloud, type: aws, role_arn: \"arn:aws:iam::000000000000:role/reader\", profile_name: work}\n",
	}
	ruleVertexAuth = diag.Rule{
		Code: "QT122", Severity: diag.Error, Title: "Google Cloud credentials name no identity",
		Doc:   "Give a profile_name, a service_account_file, or at least the project_id, which selects the identity of the environment.",
		Wrong: "- {id: cloud, type: vertex, region: europe-west4}\n",
		Right: "- {id: cloud, type: vertex, profile_name: work}\n",
	}
	ruleTokenizer = diag.Rule{
		Code: "QT123", Severity: diag.Error, Title: "a tokenizer cannot be used",
		Doc:   "The path of tokenizer is relative to the folder of the file with the key. The file is a tokenizer.json of Hugging Face or a .model file of SentencePiece; it is local, and read under the rules of includes. A file that is missing or broken, or that has a part which qtype does not implement, is an error, because the counts would be wrong.",
		Wrong: "id: shop\nmemories:\n  - {id: chat, tokenizer: no_such_tokenizer.json}\n",
		Right: "id: shop\nmemories:\n  - {id: chat, tokenizer: o200k_base}\n",
	}
	ruleInlineObject = diag.Rule{
		Code: "QT130", Severity: diag.Error, Title: "a definition in place of a reference",
		Doc:   "Models, memories, tools and variables are defined once, in their own section, and other entities refer to them by id.",
		Wrong: "id: shop\nflows:\n  - id: main\n    steps:\n      - id: ask\n        type: LLMInference\n        model: {type: Model, id: small, provider: openai}\n",
		Right: "id: shop\nmodels:\n  - {type: Model, id: small, provider: openai}\nflows:\n  - id: main\n    steps:\n      - {id: ask, type: LLMInference, model: small}\n",
	}
	ruleBareStep = diag.Rule{
		Code: "QT131", Severity: diag.Error, Title: "a step is only an id",
		Doc:   "A flow's list of steps contains steps; to use a step of another flow write {$ref: id}.",
		Wrong: "id: shop\nflows:\n  - {id: main, steps: [ask]}\n",
		Right: "id: shop\nflows:\n  - id: main\n    steps: [{$ref: ask}]\n",
	}
	ruleAlias = diag.Rule{
		Code: "QT132", Severity: diag.Warning, Title: "a key has its earlier name",
		Doc:   "Some keys were renamed to standard terms. The earlier name is still accepted and means the same; qtype validate --fix replaces it. Both names in one mapping are an error.",
		Wrong: "id: shop\nmemories:\n  - {id: chat, turns: reject}\n",
		Right: "id: shop\nmemories:\n  - {id: chat, concurrent_turns: reject}\n",
	}
)
