package docgen

import (
	"reflect"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// family is one page: the structs that it starts with, and a text above them. The
// structs that these contain follow, unless another page has them.
type family struct {
	file, title, intro string
	structs            []reflect.Type // in this order
	unions             []reflect.Type // then all cases of these unions
	text               func() string  // nil for none
}

// families are the pages in the order of the index.
var families = []family{
	{"application.md", "Application", "A document: an application, and what it contains once.",
		[]reflect.Type{reflect.TypeFor[spec.Application]()}, nil, nil},
	{"flow.md", "Flows", "Flows, their interfaces, feedback and budgets.",
		[]reflect.Type{reflect.TypeFor[spec.Flow]()}, []reflect.Type{reflect.TypeFor[spec.Feedback]()}, nil},
	{"steps.md", "Steps", "All types of steps, selected by the key `type`.",
		nil, []reflect.Type{reflect.TypeFor[spec.Step]()}, nil},
	{"models.md", "Models", "Chat and embedding models, with retries, rate limits, prices and the rules of mock models.",
		nil, []reflect.Type{reflect.TypeFor[spec.ModelEntity]()}, nil},
	{"memories.md", "Memories", "Memories and their context blocks.",
		[]reflect.Type{reflect.TypeFor[spec.Memory]()}, []reflect.Type{reflect.TypeFor[spec.ContextBlock]()}, nil},
	{"tools.md", "Tools", "Functions that agents and InvokeTool steps call.",
		nil, []reflect.Type{reflect.TypeFor[spec.Tool]()}, nil},
	{"indexes.md", "Indexes", "Vector and document indexes.",
		nil, []reflect.Type{reflect.TypeFor[spec.Index]()}, nil},
	{"stores.md", "Stores", "Databases of memories, and their encryption.",
		[]reflect.Type{reflect.TypeFor[spec.Store]()}, nil, nil},
	{"auth.md", "Credentials and secrets", "Credentials and secret managers.",
		[]reflect.Type{reflect.TypeFor[spec.SecretReference]()},
		[]reflect.Type{reflect.TypeFor[spec.Auth](), reflect.TypeFor[spec.SecretManager]()}, nil},
	{"types.md", "Types and variables", "Custom types, variables and type expressions.",
		[]reflect.Type{reflect.TypeFor[spec.CustomType](), reflect.TypeFor[spec.Variable]()}, nil, typesText},
	{"tests.md", "Tests", "Files of tests, `*.qtype-test.yaml`.",
		[]reflect.Type{reflect.TypeFor[spec.Suite]()}, nil, nil},
	{"evaluations.md", "Evaluations", "Files of evaluations, `*.qtype-eval.yaml`.",
		[]reflect.Type{reflect.TypeFor[spec.Evaluation]()}, nil, nil},
}

// types returns the structs that the page starts with.
func (p family) types() []reflect.Type {
	all := append([]reflect.Type(nil), p.structs...)
	for _, u := range spec.Unions() {
		for _, wanted := range p.unions {
			if u.Type != wanted {
				continue
			}
			for _, c := range u.Cases {
				all = append(all, reflect.TypeOf(c.New()).Elem())
			}
		}
	}
	return all
}

// typesText describes type expressions.
func typesText() string {
	quoted := func(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
	return `## Type expressions

- Primitive types: ` + quoted(spec.Primitives()) + `.
- Built-in record types: ` + quoted(spec.DomainTypes()) + `.
- ` + "`any`" + `: any JSON value, null too.
- A custom type by its id.
- ` + "`list[TYPE]`" + ` is a list; a variable may also write it as ` + "`{element_type: TYPE}`" + `.
- ` + "`TYPE?`" + ` is optional: the value may be null.

` + messageText(quoted)
}

// messageText describes the JSON form of a message.
func messageText(quoted func([]string) string) string {
	var roles []string
	for _, r := range chat.Roles() {
		roles = append(roles, string(r))
	}
	return strings.NewReplacer("'", "`", "ROLES", quoted(roles)).Replace(`## ChatMessage

A message of a conversation, as an object. A text is a message of the user with that text.

Each block is an object with 'type', 'content' and, for media, 'mime_type'. 'type' is a primitive type. The content of 'text', 'date', 'datetime' and 'time' is a text; that of a number or a boolean is the value; that of a citation is an object. The content of 'bytes', 'file', 'image', 'audio' and 'video' is '{"base64": "…"}' or a data URL, and in a file of rows also '{"path": "…"}' or '{"url": "…"}'.

Media have the same rules as inputs of these types: size and content are checked, and callers of a server name no files, and addresses only if the server fetches attachments. Messages of 'system' and 'developer' have no media. Blocks of other types are made by providers only.

| Key | Value | Default | Description |
| --- | --- | --- | --- |
| 'role' | text: ROLES | **required** | Who the message is from. |
| 'blocks' | list of objects | **required** | The content, in order. |
| 'id' | text |  | The id of the message; without it the message gets a new one. Example: 'id: m-1'. |
| 'name' | text |  | The name of the sender. Example: 'name: Ada'. |
| 'tool_calls' | list of objects |  | The calls that an assistant requests: id, name and arguments, a JSON text. Example: 'tool_calls: [{id: c1, name: add, arguments: "{}"}]'. |
| 'tool_call_id' | text |  | The call that the message of a tool answers. Example: 'tool_call_id: c1'. |

'''yaml qtype:ignore
{role: user, blocks: [{type: text, content: What is this?}, {type: image, content: {base64: iVBORw0KGgo…}, mime_type: image/png}]}
'''
`)
}

// unionOf returns the union of which a struct is a case; the zero Union for none.
func unionOf(t reflect.Type) spec.Union {
	for _, u := range spec.Unions() {
		for _, c := range u.Cases {
			if reflect.TypeOf(c.New()).Elem() == t {
				return u
			}
		}
	}
	return spec.Union{}
}

// tagOf returns the value of `type` that selects a struct; empty if it has none.
func tagOf(t reflect.Type) string {
	n, ok := reflect.New(t).Interface().(spec.Node)
	if !ok {
		return ""
	}
	return spec.TypeName(n)
}

// heading returns the title of a struct's section.
func heading(t reflect.Type) string {
	if tag := tagOf(t); tag != "" {
		return tag
	}
	return t.Name()
}
