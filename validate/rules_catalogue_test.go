package validate_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate"
)

// checkModel checks a document with one model, or two, on a day.
func checkModel(t *testing.T, models, on string, environment map[string]string) diag.List {
	t.Helper()
	opts := loader.Options{NoDotEnv: true, Lookup: func(name string) (string, bool) { value, ok := environment[name]; return value, ok }}
	opts.Day, _ = time.Parse(time.DateOnly, on)
	loaded, list := loader.LoadBytes(context.Background(), "app.qtype.yaml", []byte("id: shop\nmodels:\n"+models), opts)
	list = append(list, validate.Check(loaded.Document)...)
	return slices.DeleteFunc(list, func(d diag.Diagnostic) bool { return d.Code == "QT915" || d.Code == "QT005" })
}

// TestModels_ThinkingSentAs: a word that the model does not have is visible, and what cannot be sent is
// an error.
func TestModels_ThinkingSentAs(t *testing.T) {
	for model, want := range map[string]string{
		"provider: openai, base_url: 'https://api.deepseek.com', model_id: deepseek-v4-pro, thinking: medium": "warning QT606: thinking: medium is sent as high: the model deepseek-v4-pro has no medium",
		"provider: openai, base_url: 'https://api.deepseek.com', model_id: deepseek-v4-pro, thinking: high":   "",
		"provider: openai, model_id: gpt-5.4, thinking: max":                                                  "",
		"provider: google-ai, model_id: gemini-3.6-flash, thinking: 'off'":                                    "cannot stop reasoning",
		"provider: openai, base_url: 'http://localhost/v1', model_id: some, thinking: 2048":                   "write low, medium, high or max",
	} {
		if got := texts(checkModel(t, "  - {type: Model, id: writer, "+model+"}\n", "", nil)); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s:\ngot  %s\nwant %s", model, got, want)
		}
	}
}

// TestModels_RefusedName: the text of a refusal names the parameter that is refused, and no other one of its rule.
func TestModels_RefusedName(t *testing.T) {
	got := texts(checkModel(t, "  - {type: Model, id: writer, provider: anthropic, model_id: claude-opus-5-5, inference_params: {top_k: 3}}\n", "", nil))
	if want := "refuses top_k: `top_k` is deprecated for this model"; !strings.Contains(got, want) || strings.Contains(got, "temperature") {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestModels_Shutdown: a model is reported from its shutdown date on, and for 90 days before;
// the message names the model that answers then.
func TestModels_Shutdown(t *testing.T) {
	for _, c := range []struct{ model, on, want string }{
		{"provider: openai, model_id: gpt-4o-mini", "", ""},
		{"provider: openai, model_id: gpt-4o-mini", "2026-10-15", ""},
		{"provider: openai, model_id: gpt-4o-mini", "2026-10-16", "warning QT601: openai will shut down the model gpt-4o-mini on 2027-01-14, in 90 days"},
		{"provider: openai, model_id: gpt-4o-mini-2024-07-18", "2027-01-13", "warning QT601: openai will shut down the model gpt-4o-mini on 2027-01-14, in 1 day"},
		{"provider: openai, model_id: gpt-4o-mini", "2027-01-14", "warning QT600: openai shut down the model gpt-4o-mini on 2027-01-14; use model_id: gpt-6-luna"},
		{"provider: openai, model_id: gpt-4", "", "warning QT600: openai shut down the model gpt-4 on 2026-10-23"},
		{"provider: openai, model_id: gpt-4", "2026-07-01", ""},
		{"provider: openai, base_url: 'http://localhost/v1', model_id: gpt-4", "2027-01-14", ""},
		{"provider: openai, model_id: '${NAME:-gpt-4}'", "2026-11-28", "warning QT600"},
		{"provider: openai, model_id: '${NAME}'", "", ""},
		{"provider: google-ai, model_id: gemini-2.5-pro", "2026-11-28", "warning QT601: from 2026-12-01 on, google-ai answers the name gemini-2.5-pro with gemini-3.8-flash"},
		{"provider: google-ai, model_id: gemini-2.5-pro", "2027-11-28", "warning QT601: from 2026-12-01 on"},
		{"provider: azure-openai, model_id: gpt-4.1, base_url: 'https://a.openai.azure.com'", "2027-04-01", "use a deployment of gpt-5.1"},
		{"provider: aws-bedrock, model_id: 'us.anthropic.claude-sonnet-4-5-20250929-v1:0'", "2027-04-01", "use model_id: us.anthropic.claude-sonnet-5-5"},
	} {
		list := checkModel(t, "  - {type: Model, id: writer, "+c.model+"}\n", c.on, nil)
		if got := texts(list); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s on %q:\ngot  %s\nwant %s", c.model, c.on, got, c.want)
		}
	}
}

// texts returns diagnostics with their severities and codes.
func texts(list diag.List) string {
	var all []string
	for _, d := range list {
		all = append(all, string(d.Severity)+" "+d.Code+": "+d.Message+"; "+d.Hint)
	}
	return strings.Join(all, "\n")
}

// TestModels_ServerOfEnvironment: a server that the environment names is not the provider's own
// service, so nothing is known of its models.
func TestModels_ServerOfEnvironment(t *testing.T) {
	model := "  - {type: Model, id: writer, provider: openai, model_id: gpt-4, inference_params: {reasoning_effort: highest}}\n"
	if list := checkModel(t, model, "2027-01-01", map[string]string{"OPENAI_BASE_URL": "http://localhost:8000/v1"}); len(list) > 0 {
		t.Errorf("got %v", list)
	}
}

// TestModels_Unknown: a name that the catalogue does not have is a warning where the service has rows.
func TestModels_Unknown(t *testing.T) {
	for model, want := range map[string]string{
		"provider: openai, model_id: gpt-6-lunar":                                                        "similar names: gpt-6-luna",
		"provider: mistral, model_id: our-model":                                                         "{provider: mistral, id: our-model, context_window: …}",
		"provider: openai, base_url: 'http://a/v1', model_id: our-model":                                 "",
		"provider: openai, base_url: 'https://api.groq.com/openai/v1', model_id: our-model":              "",
		"provider: ollama, model_id: our-model":                                                          "",
		"provider: azure-openai, model_id: our-deployment, base_url: 'https://a.openai.azure.com'":       "",
		"provider: aws-bedrock, model_id: 'arn:aws:bedrock:us-east-1:1:application-inference-profile/x'": "",
		"provider: openai, model_id: 'ft:gpt-4.1:acme::7'":                                               "",
	} {
		got := texts(checkModel(t, "  - {type: Model, id: writer, "+model+"}\n", "", nil))
		if want == "" && got != "" || want != "" && (!strings.Contains(got, "warning QT602") || !strings.Contains(got, want)) {
			t.Errorf("%s: got %q, want %q", model, got, want)
		}
	}
}

// TestModels_Offline: an embedding model is replaced by a mock of either kind, a chat model by a chat model.
func TestModels_Offline(t *testing.T) {
	const vectors, gpt = "type: EmbeddingModel, provider: openai, model_id: text-embedding-3-small, dimensions: 8", "type: Model, provider: openai, model_id: gpt-6-luna"
	for _, c := range []struct{ model, mock, want string }{
		{vectors, "type: Model", ""},
		{vectors, "type: EmbeddingModel, dimensions: 8", ""},
		{vectors, "type: EmbeddingModel, dimensions: 9", `error QT405: the model "practice" cannot be used offline: its vectors have 9 dimensions, not 8`},
		{gpt, "type: Model", ""},
		{gpt, "type: EmbeddingModel, dimensions: 8", `error QT405: the model "practice" cannot be used offline: it is an embedding model`},
	} {
		got := texts(checkModel(t, "  - {id: writer, "+c.model+", offline: practice}\n  - {id: practice, provider: mock, "+c.mock+"}\n", "", nil))
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s by %s: got %q, want %q", c.model, c.mock, got, c.want)
		}
	}
}

// fixed applies the fixes of a list to a text of one file, from its end.
func fixed(text string, list diag.List) string {
	lines := strings.SplitAfter(text, "\n")
	offset := func(line, column int) int {
		at := 0
		for _, l := range lines[:line-1] {
			at += len(l)
		}
		return at + len(string([]rune(lines[line-1])[:column-1]))
	}
	var fixes []diag.Fix
	for _, d := range list {
		fixes = append(fixes, d.Fixes...)
	}
	slices.SortFunc(fixes, func(a, b diag.Fix) int {
		return offset(b.Span.Start.Line, b.Span.Start.Column) - offset(a.Span.Start.Line, a.Span.Start.Column)
	})
	for _, f := range fixes {
		text = text[:offset(f.Span.Start.Line, f.Span.Start.Column)] + f.NewText + text[offset(f.Span.End.Line, f.Span.End.Column):]
	}
	return text
}

// TestModels_Fix: the fix names the successor and removes what that refuses, in every form in which
// parameters can be written, and nothing else.
func TestModels_Fix(t *testing.T) {
	for _, c := range []struct{ before, after string }{
		{"{model_id: gpt-4o, inference_params: {temperature: 0.2, max_tokens: 100}}", "{model_id: gpt-6-luna, inference_params: {max_tokens: 100}}"},
		{"{model_id: gpt-4o, inference_params: {max_tokens: 100, temperature: 0.2, top_p: 0.5}}", "{model_id: gpt-6-luna, inference_params: {max_tokens: 100}}"},
		{"{model_id: gpt-4o, inference_params: {temperature: 0.2}, timeout: 30s}", "{model_id: gpt-6-luna, timeout: 30s}"},
		{"\n    model_id: \"gpt-4o\"\n    inference_params:\n      stop:\n        - END\n      user: ada\n      top_p: 0.5\n    timeout: 30s", "\n    model_id: \"gpt-6-luna\"\n    inference_params:\n      user: ada\n    timeout: 30s"},
		{"\n    model_id: gpt-4o\n    inference_params:\n      temperature: 0.5 # calm", "\n    model_id: gpt-4o\n    inference_params:\n      temperature: 0.5 # calm"},
		{"{model_id: '${NAME:-gpt-4o}'}", "{model_id: '${NAME:-gpt-4o}'}"},
		{"{model_id: gpt-4o}", "{model_id: gpt-6-luna}"},
	} {
		asDocument := func(text string) string {
			if rest, flow := strings.CutPrefix(text, "{"); flow {
				return "  - {type: Model, id: writer, provider: openai, " + rest + "\n"
			}
			return "  - type: Model\n    id: writer\n    provider: openai" + text + "\n"
		}
		list := checkModel(t, asDocument(c.before), "2027-01-01", nil)
		if got, want := fixed("id: shop\nmodels:\n"+asDocument(c.before), list), "id: shop\nmodels:\n"+asDocument(c.after); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s\n%v", c.before, got, want, list)
		}
	}
}

// TestModels_Window: the window of the catalogue is compared with a memory, and that of the
// document comes first.
func TestModels_Window(t *testing.T) {
	for model, want := range map[string]bool{
		"model_id: gpt-3.5-turbo":                         true,
		"model_id: gpt-3.5-turbo, context_window: 200000": false,
		"model_id: gpt-6-luna":                            false,
	} {
		got := texts(checkModel(t, "  - {type: Model, id: writer, provider: openai, "+model+`}
memories: [{id: chats}]
flows:
  - id: main
    variables: [{id: question, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [question]
    outputs: [answer]
    steps: [{type: LLMInference, id: reply, model: writer, memory: chats, inputs: [question], outputs: [answer]}]
`, "", nil))
		if strings.Contains(got, "QT411: the memory \"chats\" holds up to") != want {
			t.Errorf("%s: got %s", model, got)
		}
	}
}
