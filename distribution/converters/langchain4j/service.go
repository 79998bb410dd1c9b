package langchain4j

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/distribution/converters/assistant"
	"github.com/qtype-dev/qtype/distribution/converters/code"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/source"
)

// service is an AI service: what AiServices or an annotation configures, and its interface.
type service struct {
	name          string // of the interface
	model, memory string // ids; empty for none
	system        string
	tools         []string // ids
	steps         int      // the limit of calls of tools; 0 for the default
	annotations   []code.Link
	methods       []*method
	found         bool // the interface is in the file
	quarkus       bool // templates have {name} for values
	at            source.Span
}

// build reads AiServices.builder(…)….build() and AiServices.create(…).
func (c *conversion) build(e *code.Expr) {
	first := e.Link("builder", "create")
	if first == nil || len(first.Args) == 0 || first.Args[0].Value.Kind != code.Chain {
		return
	}
	s := &service{name: first.Arg("", 0).Links[0].Name, at: first.Span}
	c.source.Claim(e, "the service "+s.name)
	e.Use("build")
	if first.Name == "create" {
		s.model = c.resolve(first.Arg("", 1), c.models)
	}
	if l := e.Link("chatModel", "chatLanguageModel", "streamingChatModel", "streamingChatLanguageModel"); l != nil {
		s.model = c.resolve(l.Arg("", 0), c.models)
	}
	if l := e.Link("chatMemory", "chatMemoryProvider"); l != nil {
		if s.memory = c.resolve(l.Arg("", 0), c.memories); s.memory == "" {
			c.Add(input.Unsupported.At(l.Span, "the memory of %s is not in the file; one with 10 messages is in its place", s.name))
			s.memory = c.Memory(assistant.Memory{Name: "chat_memory", MaxMessages: 10})
		}
	}
	if l := e.Link("systemMessage", "systemMessageProvider"); l != nil {
		var ok bool
		if s.system, ok = c.text(l.Arg("", 0), "\n"); !ok {
			c.Add(input.Unsupported.At(l.Span, "the system message of %s is no text in the file", s.name))
		}
	}
	for _, l := range e.Links {
		if l.Name == "tools" { // which may be called more than once
			l.UseAll()
			for _, a := range l.Args {
				c.addTools(s, a.Value, l.Span)
			}
		}
	}
	if l := e.Link("maxSequentialToolsInvocations"); l != nil {
		var ok bool
		if s.steps, ok = c.value(l.Arg("", 0)).Int(); !ok {
			c.Add(input.Assumed.At(l.Span, "the value of maxSequentialToolsInvocations is not in the file; using the default"))
		}
	}
	c.services = append(c.services, s)
}

// addTools adds the tools of an object, or of the objects in a list.
func (c *conversion) addTools(s *service, e *code.Expr, at source.Span) {
	if e == nil {
		return
	}
	if e.Kind == code.List {
		for _, item := range e.Items {
			c.addTools(s, item, at)
		}
		return
	}
	name := strings.TrimSuffix(e.Name(), ".class")
	if name == "" {
		name = e.Last()
	}
	found := false
	for _, m := range c.methods {
		if strings.EqualFold(m.class, name) {
			found = true
			s.tools = append(s.tools, c.tool(m))
		}
	}
	if !found {
		c.Add(input.Unsupported.At(at, "the tools of %s are not in the file", cmp.Or(name, "an expression")))
	}
}

// readInterfaces reads the interfaces of services.
func (c *conversion) readInterfaces() {
	tokens := c.source.Tokens
	for i := 0; i+1 < len(tokens); i++ {
		var before []code.Link
		if c.source.Token(i).Is("@") {
			before, i = c.annotations(i)
		}
		for c.source.Token(i).Is("public") || c.source.Token(i).Is("private") || c.source.Token(i).Is("static") {
			i++
		}
		if !c.source.Token(i).Is("interface") || i+1 >= len(tokens) {
			if len(before) > 0 {
				i-- // the token after annotations may be one
			}
			continue
		}
		open := c.source.Index(i, "{", ";")
		if open < 0 || !c.source.Token(open).Is("{") {
			continue
		}
		closing := c.source.Close(open)
		c.readInterface(c.source.Token(i+1).Text, before, c.source.Span(c.source.Token(i+1)), c.interfaceMethods(open+1, closing))
	}
}

// interfaceMethods reads the methods between two tokens.
func (c *conversion) interfaceMethods(i, end int) []*method {
	var all []*method
	for i < end {
		m, next := c.method(i)
		for next < end && !c.source.Token(next).Is(";") && !c.source.Token(next).Is("{") && !c.source.Token(next).Is("@") {
			next++
		}
		switch {
		case next < end && c.source.Token(next).Is("{"): // a method with a body, which calls no model itself
			next = c.source.Close(next)
		case m != nil:
			all = append(all, m)
		}
		if !c.source.Token(next).Is("@") || next == i {
			next++
		}
		i = next
	}
	return all
}

// readInterface adds an interface to the services that it belongs to.
func (c *conversion) readInterface(name string, annotations []code.Link, at source.Span, methods []*method) {
	known := false
	for _, s := range c.services {
		if s.name == name {
			s.annotations, s.methods, s.found, known = annotations, methods, true, true
			c.claimAnnotations(annotations, "the service "+name)
		}
	}
	registered := annotation(annotations, "RegisterAiService", "AiService")
	isService := registered != nil || slices.ContainsFunc(methods, func(m *method) bool { return annotation(m.annotations, "SystemMessage", "UserMessage") != nil })
	if known || !isService {
		return
	}
	c.claimAnnotations(annotations, "the service "+name)
	s := &service{name: name, annotations: annotations, methods: methods, found: true, at: at, quarkus: annotation(annotations, "RegisterAiService") != nil}
	if tools := registered.Arg("tools", -1); tools != nil {
		c.addTools(s, tools, registered.Span)
	}
	if registered != nil && registered.Name == "AiService" {
		for _, m := range c.methods {
			s.tools = append(s.tools, c.tool(m))
		}
	}
	remembers := registered != nil || slices.ContainsFunc(methods, (*method).hasMemory)
	if len(c.App.Memories) > 0 && remembers {
		s.memory, _ = c.App.Memories[0].Entries[0].Value.(string)
	} else if slices.ContainsFunc(methods, (*method).hasMemory) {
		c.Add(input.Assumed.At(at, "%s: the memory is not in the file; using one with 10 messages", name))
		s.memory = c.Memory(assistant.Memory{Name: "chat_memory", MaxMessages: 10})
	}
	c.services = append(c.services, s)
}

func (m *method) hasMemory() bool {
	return slices.ContainsFunc(m.parameters, func(p parameter) bool { return annotation(p.annotations, "MemoryId") != nil })
}

// answers adds a flow for each method of a service.
func (c *conversion) answers(s *service) {
	if s.model == "" {
		s.model = c.AnyModel(s.at)
	}
	if !s.found {
		c.Add(input.Assumed.At(s.at, "the interface %s is not in the file; its flow answers a message", s.name))
		c.Answer(assistant.Answer{Name: s.name, Model: s.model, Memory: s.memory, System: s.system, Tools: s.tools, MaxSteps: s.steps, At: s.at})
	}
	for _, m := range s.methods {
		c.answer(s, m)
	}
}

// answer adds the flow of a method.
func (c *conversion) answer(s *service, m *method) {
	a := assistant.Answer{Name: s.name, Model: s.model, Memory: s.memory, Tools: slices.Clone(s.tools), MaxSteps: s.steps, At: m.at}
	if len(s.methods) > 1 {
		a.Name = s.name + "_" + m.name
	}
	a.System = s.system
	m.source.UseRange(m.from, m.to)
	c.source = m.source
	c.claimAnnotations(m.annotations, "the method "+m.name)
	for _, p := range m.parameters {
		c.claimAnnotations(p.annotations, "the parameter "+p.name)
	}
	for _, all := range [][]code.Link{s.annotations, m.annotations} {
		if l := annotation(all, "SystemMessage"); l != nil {
			a.System = c.message(s, l)
		}
	}
	if l := annotation(m.annotations, "UserMessage"); l != nil {
		a.Prompt = c.message(s, l)
	}
	if box := annotation(m.annotations, "ToolBox"); box != nil {
		own := &service{tools: a.Tools}
		c.addTools(own, box.Arg("value", 0), box.Span)
		a.Tools = own.tools
	}
	message := c.values(s, m, &a)
	if a.Prompt == "" && message == "" {
		c.Add(input.Malformed.At(m.at, "the method %s has no parameter with the message of the user", m.name))
		return
	}
	if a.Prompt == "" && values().MatchString(a.System) {
		a.Prompt = "{{" + message + "}}"
	}
	if a.Result = c.resultType(m.result); a.Result == nil && !isAnswer(m.result) {
		c.Add(input.Unsupported.At(m.at, "%s returns %s; the answer is a text here", m.name, m.result))
	}
	c.Answer(a)
}

// answerOf returns the type of an answer without those around it that say how it is delivered.
func answerOf(of string) string {
	for _, outer := range []string{"Result<", "Response<", "Flux<", "Multi<", "Uni<", "CompletableFuture<", "CompletionStage<"} {
		if inner, ok := strings.CutPrefix(of, outer); ok {
			of = strings.TrimSuffix(inner, ">")
		}
	}
	return of
}

// isAnswer reports whether a method of a type returns the text of the model.
func isAnswer(of string) bool {
	of = answerOf(of)
	return slices.Contains([]string{"String", "AiMessage", "TokenStream", "ChatResponse"}, of[strings.LastIndexByte(of, '.')+1:])
}

// values sets the values of a prompt and returns the name of that with the message of the user.
func (c *conversion) values(s *service, m *method, a *assistant.Answer) (message string) {
	for _, p := range m.parameters {
		name := p.name
		marked := annotation(p.annotations, "UserMessage") != nil
		v := annotation(p.annotations, "V")
		if annotation(p.annotations, "MemoryId", "UserName") != nil {
			continue
		}
		if text, ok := c.text(v.Arg("value", 0), ""); ok {
			name = text
		} else if !s.quarkus && v == nil && !marked && len(m.parameters)-countMemory(m) == 1 {
			a.Prompt = it().ReplaceAllString(a.Prompt, "{{"+name+"}}")
			a.System = it().ReplaceAllString(a.System, "{{"+name+"}}")
		}
		kind, known := kindOf(p.of)
		if !known || kind == document.Date || kind == document.DateTime {
			c.Add(input.Unsupported.At(m.at, "the parameter %s of %s is a %s; a text is in its place", p.name, m.name, p.of))
			kind = document.Text
		}
		a.Values = append(a.Values, assistant.Variable{Name: name, Kind: kind})
		if marked || message == "" && v == nil {
			message = name
		}
	}
	return message
}

func countMemory(m *method) int {
	n := 0
	for _, p := range m.parameters {
		if annotation(p.annotations, "MemoryId", "UserName") != nil {
			n++
		}
	}
	return n
}

var (
	it        = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{\{\s*it\s*\}\}`) })
	values    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{\{\s*\w+\s*\}\}`) })
	dates     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{\{\s*(current_(?:date_time|date|time))\s*\}\}`) })
	qute      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{+\s*(\w+)\s*\}+`) })
	quteBlock = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{[#/!][^}]*\}`) })
)

// message returns the text of a SystemMessage or UserMessage.
func (c *conversion) message(s *service, l *code.Link) string {
	delimiter := "\n"
	if d, ok := c.text(l.Arg("delimiter", -1), ""); ok {
		delimiter = d
	}
	text, ok := c.text(l.Arg("value", 0), delimiter)
	switch {
	case l.Arg("fromResource", -1) != nil:
		c.Add(input.Unsupported.At(l.Span, "the text of %s is in a resource: copy it from there", l.Name))
	case !ok && len(l.Args) > 0:
		c.Add(input.Unsupported.At(l.Span, "%s is no text in the file", l.Name))
	}
	if s.quarkus {
		if quteBlock().MatchString(text) {
			c.Add(input.Unsupported.At(l.Span, "blocks such as {#if} in %s are not converted; they stay in the text", l.Name))
		}
		text = qute().ReplaceAllString(text, "{{$1}}")
	}
	if d := dates().FindStringSubmatch(text); d != nil {
		c.Add(input.Unsupported.At(l.Span, "%s in %s has no counterpart; it stays in the text", d[1], l.Name))
		text = dates().ReplaceAllString(text, "[$1]")
	}
	return text
}
