package convert

import (
	"fmt"
	"strings"
	"unicode"
)

// model is the id of the model that a state asks.
func (w *workflow) model(s *state) string {
	if w.parts.models == nil {
		w.parts.models = map[string]string{}
	}
	n := s.n.get("aiModel")
	name := w.textOf(s.n, "aiModel")
	if name != "" && readTemplate(name).dynamic() {
		w.unsupported(n, "the model of state %s is worked out; a step asks one model, and %s was chosen", s.name, usualModel)
		name = ""
	}
	for _, key := range []string{"llmConfig", "multiLlmConfig"} {
		if c := w.mapOf(s.n, key); c != nil {
			return w.configured(c, either(name, usualModel))
		}
	}
	if name == "" {
		return w.predefined(usualModel, s.n, "The state names no model: xFlow takes this one.")
	}
	return w.predefined(name, n, "")
}

// predefined is the id of a model that xFlow knows by its name. Those that it
// declares itself are asked as it asks them.
func (w *workflow) predefined(name string, at *node, note string) string {
	if id := w.parts.models[name]; id != "" {
		return id
	}
	id := w.ids.id(name, "model")
	w.parts.models[name] = id
	made, known := modelBlock(id, name)
	if name == "llama3-70b-8192" || name == "mixtral-8x7b-32768" {
		known = made.runBy("groq")
	}
	if !known {
		w.assumed(at, "it is not known who runs the model %s; openai was chosen, and base_url can name any server that speaks its protocol", name)
	}
	if note != "" {
		made.note("%s", note)
	}
	w.app.models = append(w.app.models, made)
	if contains([]string{usualModel, "llama3-70b-8192", "mixtral-8x7b-32768", "gemini-1.5-pro-latest"}, name) {
		made.set("inference_params", (&block{inline: true}).set("temperature", literal("0.0"))).note("As xFlow asks the models that it declares itself.").set("timeout", "60s")
		if name != usualModel {
			made.set("fallbacks", inline{w.predefined(usualModel, at, "")})
		}
	}
	w.shareCredential(made)
	return id
}

// shareCredential declares the credentials that a model names.
func (w *workflow) shareCredential(made *block) {
	for _, e := range made.entries {
		if e.key == "auth" && len(w.app.auths) == 0 {
			w.app.auths = []*block{groqAuth()}
		}
	}
}

// groqKey is the id of the credentials of Groq's server.
const groqKey = "groq_key"

// groqAuth declares them: the server speaks OpenAI's protocol, but must not be
// shown OpenAI's key.
func groqAuth() *block {
	return new(block).set("type", "api_key").set("id", groqKey).set("api_key", verbatim("${GROQ_API_KEY:-}")).set("host", groqServer)
}

// groqServer is where Groq speaks OpenAI's protocol.
const groqServer = "https://api.groq.com/openai/v1"

// configured is the id of the model of an llmConfig: its first target, and the
// others in its place where that cannot answer.
func (w *workflow) configured(c *node, usual string) string {
	key := c.source()
	if id := w.parts.models[key]; id != "" {
		return id
	}
	w.known(c, "llmConfig", "provider", "apiKey", "overrideParams", "params", "model", "strategy", "targets", "weight", "temperature", "maxTokens", "topP", "timeout")
	targets := w.listOf(c, "targets")
	if strategy := w.mapOf(c, "strategy"); strategy != nil {
		w.known(strategy, "strategy", "mode", "onStatusCodes")
		switch mode := foldCase(w.textOf(strategy, "mode")); {
		case mode == "loadbalance":
			w.unsupported(strategy.get("mode"), "calls cannot be spread over several models; the first is asked, and the others where it cannot answer")
		case mode == "single" && len(targets) > 1:
			targets = targets[:1]
		}
		if strategy.get("onStatusCodes") != nil {
			w.ignored(strategy.keyAt("onStatusCodes"), "onStatusCodes is left out: a fallback is asked whenever a model cannot answer")
		}
	}
	if len(targets) == 0 {
		targets = []*node{c}
	}
	var made []*block
	var ids []string
	for i, n := range targets {
		if m := w.isMap(n, fmt.Sprintf("target %d", i+1)); m != nil {
			b := w.targetModel(m, usual)
			made, ids = append(made, b), append(ids, b.entries[1].value.(string))
		}
	}
	if len(made) == 0 {
		return w.predefined(usual, c, "")
	}
	if len(ids) > 1 {
		made[0].set("fallbacks", inline(ids[1:]))
	}
	w.app.models = append(w.app.models, made...)
	w.parts.models[key] = ids[0]
	return ids[0]
}

// targetModel declares the model of one target.
func (w *workflow) targetModel(n *node, usual string) *block {
	w.known(n, "a target of llmConfig", "provider", "apiKey", "overrideParams", "params", "model", "weight", "strategy", "targets", "temperature", "maxTokens", "topP", "timeout")
	params := &block{inline: true}
	name, timeout := w.textOf(n, "model"), ""
	take := func(from *node) {
		for _, p := range from.pairs {
			switch {
			case p.key == "model" || p.key == "modelName":
				name = either(w.textOf(from, p.key), name)
			case p.key == "timeout":
				if timeout = duration(p.value.text); timeout == "" {
					w.ignored(p.at, "the timeout %s of llmConfig is left out: it is no duration like PT60S", p.value.described())
				}
			case p.value.form == integer || p.value.form == number:
				params.set(snake(p.key), literal(p.value.text))
			case p.value.form != nothing:
				w.unsupported(p.value, "%s of llmConfig is not converted; inference_params of the model may hold it", p.key)
			}
		}
	}
	for _, p := range n.pairs {
		if contains([]string{"temperature", "maxTokens", "topP", "timeout"}, p.key) {
			take(&node{form: mapping, pairs: []pair{p}})
		}
	}
	for _, key := range []string{"overrideParams", "params"} {
		if more := w.mapOf(n, key); more != nil {
			take(more)
		}
	}
	if k := n.get("apiKey"); k != nil && k.span.File != nil {
		k.span.File.MarkSecret(k.span)
		w.assumed(k, "the key is taken from the environment here, as the comment at the model says")
	}
	name = either(name, usual)
	made, known := modelBlock(w.ids.id(name, "model"), name)
	if provider := w.textOf(n, "provider"); provider != "" {
		known = made.runBy(foldCase(provider))
	}
	if !known {
		w.assumed(n, "it is not known who runs the model %s; openai was chosen, and base_url can name any server that speaks its protocol", name)
	}
	if len(params.entries) > 0 {
		made.set("inference_params", params)
	}
	if timeout != "" {
		made.set("timeout", timeout)
	}
	w.shareCredential(made)
	return made
}

// runBy says who runs a model; it tells whether the name of the provider is known.
func (b *block) runBy(provider string) bool {
	example := map[string]string{"openai": "gpt-4o", "anthropic": "claude", "google": "gemini", "googleai": "gemini", "gemini": "gemini", "vertexai": "gemini",
		"groq": "gpt-4o", "mistral": "mistral", "mistralai": "mistral"}[provider]
	if example == "" {
		return false
	}
	like, _ := modelBlock("", example)
	entries := b.entries[:2:2] // the type and the id
	for _, e := range like.entries[2:] {
		if e.key == "model_id" {
			e = b.entries[3]
		}
		entries = append(entries, e)
	}
	b.entries = entries
	if provider == "groq" {
		b.entries[2].note = "Needs GROQ_API_KEY."
		b.set("base_url", groqServer).set("auth", groqKey)
	}
	return true
}

// duration is a duration of ISO 8601, of hours, minutes and seconds, as documents
// write it; empty for others.
func duration(s string) string {
	rest, ok := strings.CutPrefix(strings.ToUpper(s), "PT")
	if !ok || rest == "" || strings.Trim(rest, "0123456789.HMS") != "" || strings.IndexAny(rest, "HMS") <= 0 {
		return ""
	}
	return strings.ToLower(rest)
}

// snake is a name as providers write it: max_tokens for maxTokens.
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

// modelBlock declares a model by its name; known tells whether the name tells who runs it.
func modelBlock(id, name string) (b *block, known bool) {
	provider, key := "", ""
	bare := strings.ToLower(name[strings.LastIndex(name, "/")+1:])
	starts := func(prefixes ...string) bool {
		for _, p := range prefixes {
			if strings.HasPrefix(bare, p) {
				return true
			}
		}
		return false
	}
	switch {
	case starts("gpt-", "chatgpt", "o1", "o3", "o4", "text-davinci"):
		provider, key = "openai", "OPENAI_API_KEY"
	case starts("claude"):
		provider, key = "anthropic", "ANTHROPIC_API_KEY"
	case starts("gemini"):
		provider, key = "google-ai", "GOOGLE_API_KEY"
	case starts("mistral", "codestral", "ministral", "open-mistral", "open-mixtral", "pixtral"):
		provider, key = "mistral", "MISTRAL_API_KEY"
	}
	b = new(block).set("type", "Model").set("id", id)
	known = provider != ""
	if !known {
		provider, key = "openai", "OPENAI_API_KEY"
	}
	b.set("provider", provider).note("Needs %s.", key)
	return b.set("model_id", name), known
}

// declareMock declares the mock that stands in for the models while there is no
// key, so that what was converted can be tried at once.
func declareMock(id string) *block {
	echo := new(block).set("echo", true)
	echo.inline = true
	return new(block).set("type", "Model").set("id", id).set("provider", "mock").
		note("Answers with what it was sent, while there is no key.").set("rules", []*block{echo})
}

// attachMock has the models that can run stand in for by a mock while there is no key.
func attachMock(app *application, ids *names) {
	practice := ""
	for _, m := range app.models {
		provider, stands := "", false
		for _, e := range m.entries {
			switch e.key {
			case "provider":
				provider, _ = e.value.(string)
			case "offline", "base_url": // one with a server of its own is asked there
				stands = true
			}
		}
		if stands || provider == "mock" || provider == "aws-bedrock" {
			continue
		}
		if practice == "" {
			practice = ids.id("practice", "practice")
		}
		m.set("offline", practice)
	}
	if practice != "" {
		app.models = append(app.models, declareMock(practice))
	}
}
