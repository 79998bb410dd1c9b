package model

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// SchemaForm is how a required form of the answer is requested from the provider. The
// caller describes it in a message too, and checks the answer.
type SchemaForm string

// The forms, the strictest first.
const (
	SchemaFull   SchemaForm = "schema"      // the provider gets the JSON schema
	SchemaJSON   SchemaForm = "json_object" // the provider is asked for any JSON object
	SchemaPrompt SchemaForm = "prompt"      // only the message has the schema; the provider does not get it
	schemaAuto   SchemaForm = "auto"        // the strictest that the server accepts
)

// SchemaForms remembers which form servers accept, by server and model. The zero value
// knows none; it is safe for concurrent use.
type SchemaForms struct {
	mu    sync.Mutex
	known map[[2]string]SchemaForm
}

// first returns the form to try first.
func (f *SchemaForms) first(of Info) SchemaForm {
	f.mu.Lock()
	defer f.mu.Unlock()
	if form, ok := f.known[[2]string{of.Endpoint, of.Name}]; ok {
		return form
	}
	return SchemaFull
}

// learn remembers a form that the server has accepted after it rejected stricter ones.
func (f *SchemaForms) learn(of Info, form SchemaForm) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil {
		f.known = map[[2]string]SchemaForm{}
	}
	f.known[[2]string{of.Endpoint, of.Name}] = form
}

// WithSchemaForm decides how requests with a Schema ask for its form: by a fixed form, or
// with "auto" (and "") by the strictest one that the server accepts, which known remembers.
// available lists the forms of the provider's protocol besides SchemaPrompt.
func WithSchemaForm(m Chat, form SchemaForm, available []string, known *SchemaForms) Chat {
	if form == "" {
		form = schemaAuto
	}
	if known == nil {
		known = &SchemaForms{}
	}
	return &structured{Chat: m, form: form, available: available, known: known}
}

type structured struct {
	Chat
	form      SchemaForm
	available []string
	known     *SchemaForms
}

// Generate sends the request in one form after the other until the server accepts one.
func (s *structured) Generate(ctx context.Context, req Request) iter.Seq2[Event, error] {
	if req.Schema == nil {
		return s.Chat.Generate(ctx, req)
	}
	if s.form != schemaAuto {
		return s.Chat.Generate(ctx, in(req, s.form))
	}
	return func(yield func(Event, error) bool) {
		learns := false
		for form := s.supported(s.known.first(s.Info())); ; form = s.supported(weaker(form)) {
			begun, err := s.try(ctx, in(req, form), yield)
			if why := rejection(err); !begun && why != notRejected && form != SchemaPrompt {
				learns = learns || why == formRejected
				continue
			}
			if err != nil {
				yield(Event{}, err)
			} else if learns {
				s.known.learn(s.Info(), form)
			}
			return
		}
	}
}

// try makes one call. begun reports whether anything was yielded.
func (s *structured) try(ctx context.Context, req Request, yield func(Event, error) bool) (begun bool, err error) {
	for ev, err := range s.Chat.Generate(ctx, req) {
		if err != nil {
			return begun, err
		}
		begun = true
		if !yield(ev, nil) {
			return true, nil
		}
	}
	return begun, nil
}

// supported returns the form itself if the protocol has it, else the next weaker one.
func (s *structured) supported(form SchemaForm) SchemaForm {
	for form != SchemaPrompt && !slices.Contains(s.available, string(form)) {
		form = weaker(form)
	}
	return form
}

// weaker returns the form after a form.
func weaker(form SchemaForm) SchemaForm {
	if form == SchemaFull {
		return SchemaJSON
	}
	return SchemaPrompt
}

// in returns the request with its schema in a form.
func in(req Request, form SchemaForm) Request {
	if form == SchemaPrompt {
		req.Schema = nil
		return req
	}
	schema := *req.Schema
	schema.Form = form
	req.Schema = &schema
	return req
}

// rejectionKind is what a server rejected.
type rejectionKind int

const (
	notRejected    rejectionKind = iota // something else than the form of the answer
	schemaRejected                      // this schema; another one may be accepted
	formRejected                        // every request of this form
)

// rejection returns what a server rejected. The words are those of OpenAI, Anthropic,
// Bedrock, Google, Mistral, Ollama, llama.cpp, llama-cpp-python and vLLM. A wrong guess costs a
// request and is remembered only if the server accepts a weaker form.
func rejection(err error) rejectionKind {
	var failure *Error
	if !errors.As(err, &failure) {
		return notRejected
	}
	switch failure.Status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotImplemented, http.StatusInternalServerError:
	default:
		return notRejected
	}
	text := strings.ToLower(failure.Message + " " + failure.Code)
	contains := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch {
	case contains("invalid schema", "invalid json schema", "additionalproperties", "grammar", "$ref", "recursive schema", "too many optional parameters", "too many strict tools", "output_config.format.schema"):
		return schemaRejected
	case contains("response_format", "response format", "json_schema", "json schema", "json_object", "json mode", "output_format", "output_config",
		"output format", "responsejsonschema", "response_json_schema", "responseschema", "response_schema", "responsemimetype",
		"response mime type", "response_mime_type", "structured output", "chatrequest.format", "invalid format",
		"outputconfig", "textformat", "tool_choice: type", "tool_choice forces", "does not support this tool_choice"):
		return formRejected
	}
	return notRejected
}
