package googleai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// body encodes a request.
func (p *protocol) body(req model.Request) (map[string]any, error) {
	fields, config, err := p.params()
	if err != nil {
		return nil, err
	}
	system, rest := wire.Split(req.Messages)
	contents, err := p.contents(rest)
	if err != nil {
		return nil, err
	}
	fields["contents"] = contents
	if strings.TrimSpace(system) != "" {
		fields["systemInstruction"] = content{Parts: []part{{Text: &system}}}
	}
	if err := p.addTools(fields, req); err != nil {
		return nil, err
	}
	if _, set := fields["toolConfig"]; req.MustCall && !set {
		fields["toolConfig"] = map[string]any{"functionCallingConfig": map[string]string{"mode": "ANY"}}
	}
	if _, set := config["responseMimeType"]; req.Schema != nil && !set {
		config["responseMimeType"] = "application/json"
		if req.Schema.Form != model.SchemaJSON {
			config["responseJsonSchema"] = req.Schema.JSON
		}
	}
	if len(config) > 0 {
		fields["generationConfig"] = config
	}
	return fields, nil
}

// topLevel are the parameters next to generationConfig, of the Gemini API and of Vertex AI.
var topLevel = []string{"cachedContent", "labels", "modelArmorConfig", "outputConfig", "safetySettings", "serviceTier", "store", "toolConfig"}

// params splits the inference parameters: most belong to generationConfig. All names are in
// Google's spelling, so that max_tokens and topP both work.
func (p *protocol) params() (fields, config map[string]any, err error) {
	fields, config = map[string]any{}, map[string]any{}
	for name, raw := range p.Encoded {
		switch name := wire.Camel(name); {
		case name == "generationConfig":
			var own map[string]json.RawMessage
			if err := json.Unmarshal(raw, &own); err != nil {
				return nil, nil, fmt.Errorf("inference_params: generationConfig must be a map")
			}
			for inner, value := range own {
				config[wire.Camel(inner)] = camelNames(inner, value)
			}
		case slices.Contains(topLevel, name):
			fields[name] = camelNames(name, raw)
		case name == "maxTokens" || name == "maxCompletionTokens":
			config["maxOutputTokens"] = raw
		case name == "stop":
			config["stopSequences"] = wire.TextList(raw)
		default:
			config[name] = camelNames(name, raw)
		}
	}
	return fields, config, nil
}

// camelNames returns the value of a parameter with its inner names in Google's spelling, such
// as thinkingLevel. The names in schemas and labels are the document's own.
func camelNames(name string, raw json.RawMessage) json.RawMessage {
	switch name = wire.Camel(name); {
	case strings.HasSuffix(strings.ToLower(name), "schema"), name == "labels":
		return raw
	}
	var object map[string]json.RawMessage
	var list []json.RawMessage
	var changed any
	switch {
	case json.Unmarshal(raw, &object) == nil && object != nil:
		inner := make(map[string]json.RawMessage, len(object))
		for key, value := range object {
			inner[wire.Camel(key)] = camelNames(key, value)
		}
		changed = inner
	case json.Unmarshal(raw, &list) == nil && list != nil:
		for i, value := range list {
			list[i] = camelNames(name, value)
		}
		changed = list
	default:
		return raw
	}
	raw, _ = json.Marshal(changed) // decoded JSON always encodes
	return raw
}

// contents merges adjacent messages of one side: the results of several calls must be
// in the content that follows the calls.
func (p *protocol) contents(messages []chat.Message) ([]content, error) {
	var all []content
	names := map[string]string{} // tool names by the ids of the calls
	for _, m := range messages {
		role := "user"
		if wire.NormalizeRole(m.Role) == chat.Assistant {
			role = "model"
		}
		parts, err := p.partsOf(m, names)
		if err != nil {
			return nil, err
		}
		if len(parts) == 0 {
			continue
		}
		if n := len(all); n > 0 && all[n-1].Role == role {
			all[n-1].Parts = append(all[n-1].Parts, parts...)
			resultsFirst(all[n-1].Parts)
			continue
		}
		all = append(all, content{Role: role, Parts: parts})
	}
	if p.requiresSignatures() {
		placeSignatures(all)
	}
	return all, nil
}

// noSignature is what Google documents for a call that has no signature, because another
// model or another server made it.
const noSignature = "skip_thought_signature_validator"

// placeSignatures completes the steps of the current turn: the first call of each must have a
// signature. The turn begins with the last content of the user that has no results of tools.
func placeSignatures(contents []content) {
	for _, c := range slices.Backward(contents) {
		if c.Role == "user" {
			if !slices.ContainsFunc(c.Parts, func(p part) bool { return p.Result != nil }) {
				return
			}
			continue
		}
		if i := slices.IndexFunc(c.Parts, func(p part) bool { return p.Call != nil }); i >= 0 {
			c.Parts[i].Signature = cmp.Or(c.Parts[i].Signature, noSignature)
		}
	}
}

// requiresSignatures reports whether the model refuses calls without a signature: those from
// Gemini 3 on, whose thinking has levels.
func (p *protocol) requiresSignatures() bool {
	return p.unsigned || p.Info.Known != nil && p.Info.Known.Reasoning.Control == catalogue.ThinkingLevel
}

func (p *protocol) partsOf(m chat.Message, names map[string]string) ([]part, error) {
	role := wire.NormalizeRole(m.Role)
	if name := names[m.ToolCallID]; role == chat.Tool && name != "" {
		return p.result(m, name), nil
	}
	if p.unsigned {
		m = m.WithoutItems()
	}
	var parts []part
	for _, b := range m.Blocks {
		var made []part
		var err error
		if role == chat.Assistant {
			made, err = answerParts(b)
		} else if !b.IsText() || b.Text != "" { // an empty text is not a part
			made = make([]part, 1)
			made[0], err = partOf(b)
		}
		if err != nil {
			return nil, err
		}
		parts = append(parts, made...)
	}
	for _, call := range m.Calls() {
		names[call.ID] = call.Name
	}
	return parts, nil
}

// result encodes the result of a tool. Its media are a part of it for models from Gemini 3,
// and follow the results for others, which accept only text in a result.
func (p *protocol) result(m chat.Message, name string) []part {
	r := &functionResult{ID: m.ToolCallID, Name: name}
	texts := []string{}
	if text := m.Text(); text != "" {
		texts = append(texts, text)
	}
	var media []part
	for _, b := range m.Blocks {
		if !b.Media() {
			continue
		}
		made, err := partOf(b)
		switch {
		case err != nil:
			texts = append(texts, wire.ResultNote(b))
		case p.Info.Known != nil && p.Info.Known.Tools.MediaResults == catalogue.Yes:
			r.Parts = append(r.Parts, resultPart{Inline: made.Inline})
		default:
			media = append(media, made)
		}
	}
	if len(media) > 0 {
		texts = append(texts, fmt.Sprintf("[%d files follow the results of the tools]", len(media)))
	}
	r.Response = map[string]string{"result": strings.Join(texts, "\n")}
	return append([]part{{Result: r}}, media...)
}

// resultsFirst moves the results of tools before other parts, in their order: the results of
// all calls must be together.
func resultsFirst(parts []part) {
	rank := func(p part) int {
		if p.Result != nil {
			return 0
		}
		return 1
	}
	if len(parts) > 0 && parts[0].Result != nil {
		slices.SortStableFunc(parts, func(a, b part) int { return rank(a) - rank(b) })
	}
}

// maxRequests limits the requests for one answer.
const maxRequests = 20

// Generate sends one request, or several: an answer that Google ends with a token is
// continued with it, and a request whose signatures Google refuses is sent once more without
// them. model.WithRetry retries.
func (c *Client) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		p := *c.protocol
		chat := wire.NewChat(p.Server, &p, p.api)
		for n := 1; ; n++ {
			last, stopped, err := pass(chat.Generate(ctx, req), yield)
			switch {
			case stopped:
				return
			case err == nil && p.answer.token != "" && n < maxRequests:
				continue
			case err == nil && p.answer.token != "":
				last, err = model.Event{}, &model.Error{Model: p.Info.ID, Endpoint: p.Info.Endpoint, Message: fmt.Sprintf("the answer is not complete after %d requests (finish reason %s)", n, p.answer.finish)}
			case err != nil && !p.unsigned && refusesSignature(err):
				p.unsigned = true
				continue
			}
			yield(last, err)
			return
		}
	}
}

// pass passes the deltas of an answer on, and returns what ends it.
func pass(events iter.Seq2[model.Event, error], yield func(model.Event, error) bool) (last model.Event, stopped bool, err error) {
	for ev, err := range events {
		switch {
		case err != nil:
			return model.Event{}, false, err
		case ev.Response != nil:
			return ev, false, nil
		case !yield(ev, nil):
			return ev, true, nil
		}
	}
	return model.Event{}, true, nil
}

// refusesSignature reports whether a request was refused for a signature that is missing, or
// that another key or server has issued. Google has no code for it.
func refusesSignature(err error) bool {
	failure, ok := errors.AsType[*model.Error](err)
	return ok && failure.Status == http.StatusBadRequest && strings.Contains(strings.ReplaceAll(strings.ToLower(failure.Message), "_", " "), "thought signature")
}

// function is a tool in Gemini's format.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

// hostedTools are the names of Google's tools by their kind in documents.
var hostedTools = map[string]string{
	"google_search": "googleSearch", "web_search": "googleSearch", "grounding": "googleSearch",
	"url_context": "urlContext", "web_fetch": "urlContext",
	"code_execution": "codeExecution", "google_maps": "googleMaps", "file_search": "fileSearch", "computer_use": "computerUse",
	"enterprise_web_search": "enterpriseWebSearch", "retrieval": "retrieval",
}

// serviceOnly are the tools that only one of Google's services has.
var serviceOnly = map[string]string{"fileSearch": geminiAPI, "enterpriseWebSearch": vertexAPI, "retrieval": vertexAPI}

// addTools adds the tools to a request: functions, and those that Google runs.
func (p *protocol) addTools(fields map[string]any, req model.Request) error {
	var functions []function
	var list []map[string]any
	for _, t := range req.Tools {
		switch {
		case t.Hosted != "":
			own, err := p.hosted(t)
			if err != nil {
				return err
			}
			list = append(list, own)
		default:
			functions = append(functions, function{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
		}
	}
	if len(functions) > 0 {
		bound := !req.NoCalls && !slices.ContainsFunc(req.Tools, func(t model.Tool) bool { return t.Hosted == "" && !t.Strict })
		if _, set := fields["toolConfig"]; bound && !set {
			fields["toolConfig"] = json.RawMessage(`{"functionCallingConfig":{"mode":"VALIDATED"}}`)
		}
		if err := setToolConfig(fields, len(list) > 0 && p.api == geminiAPI, req.NoCalls); err != nil {
			return err
		}
		list = append(list, map[string]any{"functionDeclarations": functions})
	}
	if len(list) > 0 {
		fields["tools"] = list
	}
	return nil
}

// hosted encodes a tool that Google runs.
func (p *protocol) hosted(t model.Tool) (map[string]any, error) {
	name := hostedTools[t.Hosted]
	if only := serviceOnly[name]; name == "" || only != "" && only != p.api {
		kinds := slices.DeleteFunc(slices.Sorted(maps.Keys(hostedTools)), func(kind string) bool {
			only := serviceOnly[hostedTools[kind]]
			return only != "" && only != p.api
		})
		return nil, fmt.Errorf("%s has no hosted tool %s; it has %s", p.Info.Provider, t.Hosted, strings.Join(kinds, ", "))
	}
	settings := json.RawMessage("{}")
	if len(t.Settings) > 0 {
		settings = camelNames(name, t.Settings)
	}
	return map[string]any{name: settings}, nil
}

// setToolConfig sets the toolConfig of a request with functions. If hosted tools are next to them, the
// model may use both in one turn, and the calls of hosted tools are parts of the answer.
func setToolConfig(fields map[string]any, mixed, noCalls bool) error {
	if !mixed && !noCalls {
		return nil
	}
	config := map[string]json.RawMessage{}
	if raw, ok := fields["toolConfig"].(json.RawMessage); ok && json.Unmarshal(raw, &config) != nil {
		return errors.New("inference_params: toolConfig must be a map")
	}
	if _, set := config["includeServerSideToolInvocations"]; mixed && !set {
		config["includeServerSideToolInvocations"] = json.RawMessage("true")
	}
	if noCalls {
		config["functionCallingConfig"] = json.RawMessage(`{"mode":"NONE"}`)
	}
	fields["toolConfig"] = config
	return nil
}
