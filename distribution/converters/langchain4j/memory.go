package langchain4j

import (
	"cmp"

	"github.com/qtype-dev/qtype/distribution/converters/assistant"
	"github.com/qtype-dev/qtype/distribution/converters/code"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// memoryClasses are the classes of memories.
var memoryClasses = []string{"MessageWindowChatMemory", "TokenWindowChatMemory"}

// memoryChain declares the memory that a chain such as MessageWindowChatMemory.withMaxMessages(10)
// makes and returns its id.
func (c *conversion) memoryChain(e *code.Expr, name string) string {
	first := e.Links[0]
	m := assistant.Memory{Name: cmp.Or(name, "chat_memory")}
	c.source.Claim(e, "the memory")
	e.Use("builder", "build")
	if l := e.Link("maxMessages", "withMaxMessages", "dynamicMaxMessages"); l != nil {
		m.MaxMessages = c.limit(*l, 10)
	}
	if l := e.Link("maxTokens", "withMaxTokens", "dynamicMaxTokens"); l != nil {
		m.MaxTokens = c.limit(*l, 1000)
		c.ignore(l, l.Arg("", 1) != nil, "the token counter is ignored: tokens are counted as the model's tokenizer counts them")
	}
	if l := e.Link("id"); l != nil {
		if id, ok := c.text(l.Arg("", 0), ""); ok {
			m.Note = "One conversation for each session: qtype run --session " + id
		}
	}
	if l := e.Link("chatMemoryStore"); l != nil {
		class := l.Arg("", 0).Last()
		c.ignore(l, class != "InMemoryChatMemoryStore" && class != "SingleSlotChatMemoryStore", "the store is ignored: memories store each session, in the store of --store or of the document")
	}
	l := e.Link("alwaysKeepSystemMessageFirst")
	c.ignore(l, l.Arg("", 0) != nil, "alwaysKeepSystemMessageFirst is ignored: the system message is always the first one")
	l = e.Link("tokenCountEstimator")
	c.ignore(l, l.Arg("", 0) != nil, "the token counter is ignored: tokens are counted as the model's tokenizer counts them")
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

// ignore reports a call without effect on the answers, if there is one.
func (c *conversion) ignore(l *code.Link, given bool, reason string) {
	if given {
		c.Add(input.Ignored.At(l.Span, "%s", reason))
	}
}

// limit returns the limit of a memory. One that is not in the file is replaced.
func (c *conversion) limit(l code.Link, otherwise int) int {
	value := c.value(l.Arg("", 0))
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
