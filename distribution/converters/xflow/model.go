package xflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/qtype-dev/qtype/distribution/converters/jq"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// model returns the id of the model of a state.
func (w *workflow) model(s *state) string {
	if w.parts.models == nil {
		w.parts.models = map[string]string{}
	}
	n := s.n.Get("aiModel")
	name := w.Text(s.n, "aiModel")
	if name != "" && jq.ParseTemplate(name).HasExpressions() {
		w.Unsupported(n, "the model of state %s is an expression; a step has a fixed model, using %s", s.name, defaultModel)
		name = ""
	}
	for _, key := range []string{"llmConfig", "multiLlmConfig"} {
		if c := w.Map(s.n, key); c != nil {
			return w.configured(c, cmp.Or(name, defaultModel))
		}
	}
	if name == "" {
		return w.predefined(defaultModel, s.n, "xFlow's default if a state names no model.")
	}
	return w.predefined(name, n, "")
}

// predefined returns the id of a model that xFlow knows by name, with the settings
// of xFlow.
func (w *workflow) predefined(name string, at *input.Node, note string) string {
	if id := w.parts.models[name]; id != "" {
		return id
	}
	id := w.ids.New(name, "model")
	w.parts.models[name] = id
	made, known := document.NewModel(id, name)
	if name == "llama3-70b-8192" || name == "mixtral-8x7b-32768" {
		known = made.SetProvider("groq")
	}
	if !known {
		w.Assumed(at, "unknown provider of model %s; using openai, set base_url for another server with its protocol", name)
	}
	if note != "" {
		made.Note("%s", note)
	}
	w.app.Models = append(w.app.Models, made)
	if slices.Contains([]string{defaultModel, "llama3-70b-8192", "mixtral-8x7b-32768", "gemini-1.5-pro-latest"}, name) {
		made.Set("inference_params", (&document.Block{Inline: true}).Set("temperature", document.Number("0.0"))).Note("xFlow's settings of its predefined models.").Set("timeout", "60s")
		if name != defaultModel {
			made.Set("fallbacks", document.NameList{w.predefined(defaultModel, at, "")})
		}
	}
	w.shareCredential(made)
	return id
}

// shareCredential declares the credentials that a model refers to.
func (w *workflow) shareCredential(made *document.Block) {
	for _, e := range made.Entries {
		if e.Key == "auth" && len(w.app.Auths) == 0 {
			w.app.Auths = []*document.Block{document.GroqAuth()}
		}
	}
}

// configured returns the id of the model of an llmConfig: its first target, with
// the others as fallbacks.
func (w *workflow) configured(c *input.Node, fallback string) string {
	key := c.Fingerprint()
	if id := w.parts.models[key]; id != "" {
		return id
	}
	w.CheckKeys(c, "llmConfig", "provider", "apiKey", "overrideParams", "params", "model", "strategy", "targets", "weight", "temperature", "maxTokens", "topP", "timeout")
	targets := w.List(c, "targets")
	if strategy := w.Map(c, "strategy"); strategy != nil {
		w.CheckKeys(strategy, "strategy", "mode", "onStatusCodes")
		switch mode := input.NormalizeName(w.Text(strategy, "mode")); {
		case mode == "loadbalance":
			w.Unsupported(strategy.Get("mode"), "calls cannot be balanced over several models; using the first, with the others as fallbacks")
		case mode == "single" && len(targets) > 1:
			targets = targets[:1]
		}
		if strategy.Get("onStatusCodes") != nil {
			w.Ignored(strategy.KeySpan("onStatusCodes"), "onStatusCodes ignored: any failure of a model leads to its fallback")
		}
	}
	if len(targets) == 0 {
		targets = []*input.Node{c}
	}
	var made []*document.Block
	var ids []string
	for i, n := range targets {
		if m := w.AsMap(n, fmt.Sprintf("target %d", i+1)); m != nil {
			b := w.targetModel(m, fallback)
			made, ids = append(made, b), append(ids, b.Entries[1].Value.(string))
		}
	}
	if len(made) == 0 {
		return w.predefined(fallback, c, "")
	}
	if len(ids) > 1 {
		made[0].Set("fallbacks", document.NameList(ids[1:]))
	}
	w.app.Models = append(w.app.Models, made...)
	w.parts.models[key] = ids[0]
	return ids[0]
}

// targetModel declares the model of one target.
func (w *workflow) targetModel(n *input.Node, fallback string) *document.Block {
	w.CheckKeys(n, "a target of llmConfig", "provider", "apiKey", "overrideParams", "params", "model", "weight", "strategy", "targets", "temperature", "maxTokens", "topP", "timeout")
	w.Skip(n, "each call goes to the first model that answers", "weight")
	params := &document.Block{Inline: true}
	name, timeout := w.Text(n, "model"), ""
	take := func(from *input.Node) {
		for _, p := range from.Entries() {
			switch {
			case p.Key == "model" || p.Key == "modelName":
				name = cmp.Or(w.Text(from, p.Key), name)
			case p.Key == "timeout":
				if timeout = duration(p.Value.Text); timeout == "" {
					w.Ignored(p.KeySpan, "timeout %s of llmConfig ignored: not a duration such as PT60S", p.Value.Describe())
				}
			case p.Value.Kind == input.Int || p.Value.Kind == input.Float:
				params.Set(snake(p.Key), document.Number(p.Value.Text))
			case p.Value.Kind != input.Null:
				w.Unsupported(p.Value, "%s of llmConfig is not converted; set it in inference_params of the model", p.Key)
			}
		}
	}
	for _, p := range n.Entries() {
		if slices.Contains([]string{"temperature", "maxTokens", "topP", "timeout"}, p.Key) {
			take(&input.Node{Kind: input.Map, Pairs: []input.Pair{p}})
		}
	}
	for _, key := range []string{"overrideParams", "params"} {
		if more := w.Map(n, key); more != nil {
			take(more)
		}
	}
	if k := n.Get("apiKey"); k != nil && k.Span.File != nil {
		k.Span.File.MarkSecret(k.Span)
		w.Assumed(k, "the key is not copied; the comment of the model names the environment variable that replaces it")
	}
	name = cmp.Or(name, fallback)
	made, known := document.NewModel(w.ids.New(name, "model"), name)
	if provider := w.Text(n, "provider"); provider != "" {
		known = made.SetProvider(input.NormalizeName(provider))
	}
	if !known {
		w.Assumed(n, "unknown provider of model %s; using openai, set base_url for another server with its protocol", name)
	}
	if len(params.Entries) > 0 {
		made.Set("inference_params", params)
	}
	if timeout != "" {
		made.Set("timeout", timeout)
	}
	w.shareCredential(made)
	return made
}

// duration converts an ISO 8601 duration of hours, minutes and seconds to the
// language's form. It returns "" for others.
func duration(s string) string {
	rest, ok := strings.CutPrefix(strings.ToUpper(s), "PT")
	if !ok || rest == "" || strings.Trim(rest, "0123456789.HMS") != "" || strings.IndexAny(rest, "HMS") <= 0 {
		return ""
	}
	return strings.ToLower(rest)
}

// snake converts a name to snake case: max_tokens for maxTokens.
func snake(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
