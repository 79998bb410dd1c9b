package langchain4j

import (
	"cmp"

	"github.com/qtype-dev/qtype/internal/convert/assistant"
	"github.com/qtype-dev/qtype/internal/convert/code"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// memoryClasses are the classes of memories.
var memoryClasses = []string{"MessageWindowChatMemory", "TokenWindowChatMemory"}

// memoryChain declares the memory that a chain such as MessageWindowChatMemory.withMaxMessages(10)
// makes and returns its id.
func (c *conversion) memoryChain(e *code.Expr, name string) string {
	first := e.Links[0]
	m := assistant.Memory{Name: cmp.Or(name, "chat_memory")}
	for _, l := range e.Links[1:] {
		switch l.Name {
		case "maxMessages", "withMaxMessages", "dynamicMaxMessages":
			m.MaxMessages = c.limit(l, 10)
		case "maxTokens", "withMaxTokens", "dynamicMaxTokens":
			m.MaxTokens = c.limit(l, 1000)
			if len(l.Args) > 1 {
				c.Add(input.Ignored.At(l.Span, "the token counter is ignored: tokens are counted as the model's tokenizer counts them"))
			}
		case "id":
			if id := l.Arg("", 0); id != nil && id.Kind == code.Text {
				m.Note = "One conversation for each session: qtype run --session " + id.Text
			}
		case "chatMemoryStore":
			if class := l.Arg("", 0).Last(); class != "InMemoryChatMemoryStore" && class != "SingleSlotChatMemoryStore" {
				c.Add(input.Ignored.At(l.Span, "the store is ignored: memories store each session, in the store of --store or of the document"))
			}
		case "alwaysKeepSystemMessageFirst", "builder", "build", "tokenCountEstimator":
		default:
			c.Add(input.Unsupported.At(l.Span, "%s of the memory is not converted", l.Name))
		}
	}
	if m.MaxMessages == 0 && m.MaxTokens == 0 {
		if first.Name == "TokenWindowChatMemory" {
			m.MaxTokens = 1000
			c.Add(input.Malformed.At(first.Span, "the memory has no maxTokens; using 1000"))
		} else {
			m.MaxMessages = 10
			c.Add(input.Malformed.At(first.Span, "the memory has no maxMessages; using 10"))
		}
	}
	return c.Memory(m)
}

// limit returns the limit of a memory. One that is not in the file is replaced.
func (c *conversion) limit(l code.Link, otherwise int) int {
	value := l.Arg("", 0)
	if n, ok := value.Int(); ok {
		return n
	}
	if value != nil && value.Kind == code.Number {
		c.Add(input.Malformed.At(l.Span, "%s must be a positive integer, not %s; using %d", l.Name, value.Text, otherwise))
	} else {
		c.Add(input.Assumed.At(l.Span, "the value of %s is not in the file; using %d", l.Name, otherwise))
	}
	return otherwise
}
