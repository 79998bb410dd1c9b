package qtype_test

import (
	"os"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec/diag"
)

// refusal is a document that a run refuses. The diagnostic with the code is at the text
// between ⟦ and ⟧.
type refusal struct{ name, code, text string }

// TestValidateReportsWhatRunRefuses checks documents whose tools, models, indexes or steps
// cannot be made: validation reports one error at the exact place, and a run that is not
// validated fails too.
func TestValidateReportsWhatRunRefuses(t *testing.T) {
	credentials(t)
	t.Chdir(t.TempDir())
	const path = "app.qtype.yaml"
	for _, r := range refusals() {
		t.Run(r.code+" "+r.name, func(t *testing.T) {
			before, _, marked := strings.Cut(r.text, "⟦")
			if !marked {
				t.Fatal("no place is marked")
			}
			line, column := strings.Count(before, "\n")+1, len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))+1
			testkit.Must(t, os.WriteFile(path, []byte(strings.NewReplacer("⟦", "", "⟧", "").Replace(r.text)), 0o600))
			program, list := qtype.Check(t.Context(), path, qtype.WithStrict())
			found := errorsOf(list)
			if len(found) != 1 || found[0].Code != r.code || found[0].Span.Start.Line != line || found[0].Span.Start.Column != column {
				t.Errorf("got %v, want %s at %d:%d", found, r.code, line, column)
			}
			if err := build(t, program); err == nil {
				t.Error("a run accepts it")
			}
		})
	}
}

// errorsOf returns the diagnostics that are errors.
func errorsOf(list diag.List) []diag.Diagnostic {
	var found []diag.Diagnostic
	for _, d := range list {
		if d.Severity == diag.Error {
			found = append(found, d)
		}
	}
	return found
}

// TestUnusedEntitiesDoNotFail checks that what no flow uses is not an error: a run does
// not make it.
func TestUnusedEntitiesDoNotFail(t *testing.T) {
	credentials(t)
	t.Chdir(t.TempDir())
	const path = "app.qtype.yaml"
	for _, text := range []string{
		"id: shop\nauths: [{type: api_key, id: k, api_key: \"\"}]\ntools:\n  - {type: APITool, id: find, name: find, description: Finds, endpoint: \"https://shop.example/\", auth: k}\n",
		"id: shop\ntools:\n  - {type: PythonFunctionTool, id: find, name: find, description: Finds, module_path: a-b, function_name: f}\n",
		"id: shop\ntools:\n  - {type: APITool, id: find, name: find, description: Finds, endpoint: \"https://shop.example/\", headers: {X-A: b}, header_parameters: [{id: x, type: text}], names: {x: X-A}}\n",
	} {
		testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
		program, list := qtype.Check(t.Context(), path, qtype.WithStrict())
		if list.Errors() > 0 || len(list) == 0 {
			t.Errorf("%s: got %v", text, list)
		}
		testkit.Must(t, build(t, program))
	}
}

// refusals lists documents for all that a builder refuses because of the document alone.
func refusals() []refusal {
	var all []refusal
	add := func(code string, document func(string) string, cases ...string) {
		for _, c := range cases {
			all = append(all, refusal{strings.NewReplacer("\n", " ", "/", "_").Replace(c), code, document(c)})
		}
	}
	add("QT463", apiTool,
		`headers: {authorization: ⟦x⟧}, auth: token`,
		`headers: {x-api-key: ⟦x⟧}, auth: key`,
		`header_parameters: [⟦{id: h, type: "text?"}⟧], names: {h: AUTHORIZATION}, auth: token`,
		`header_parameters: [⟦{id: h, type: "text?"}⟧], names: {h: X-Shop}, headers: {x-shop: a}`,
		`header_parameters: [⟦{id: h, type: "text?"}⟧], names: {h: "a b"}`,
		`parameters: [⟦{id: code, type: "text?"}⟧], auth: query`,
		`endpoint: ⟦"https://shop.example/?code=1"⟧, auth: query`,
		`endpoint: ⟦"https://shop.example/?a=%zz"⟧, auth: query`)
	add("QT483", func(auth string) string { return withAuths(auth, apiTool("auth: subject")) },
		`{type: api_key, id: subject, api_key: k, host: ⟦shop⟧}`,
		`{type: api_key, id: subject, api_key: k, host: ⟦"https://other.example"⟧}`,
		`{type: api_key, id: subject, api_key: ⟦""⟧}`,
		`{type: bearer_token, id: subject, token: ⟦"a\nb"⟧}`,
		`{type: basic, id: subject, username: u, password: ⟦""⟧}`,
		`{type: oauth2, id: subject, client_id: c, client_secret: ⟦"a\u0001b"⟧, token_url: "https://shop.example/token"}`)
	add("QT483", func(auth string) string { return withAuths(auth, chatModel("provider: openai, auth: account")) },
		`{type: api_key, id: account, api_key: ⟦""⟧}`,
		`{type: api_key, id: account, api_key: k, host: ⟦shop.example⟧}`,
		`{type: bearer_token, id: account, token: ⟦"a\u007fb"⟧}`)
	add("QT483", func(auth string) string { return withAuths(auth, vectorIndex("module: qdrant, auth: account")) },
		`{type: api_key, id: account, api_key: ⟦"a\nb"⟧}`)
	add("QT467", func(keys string) string { return tool("PythonFunctionTool", keys) },
		`module_path: ⟦shop-orders⟧, function_name: find`, `module_path: ⟦""⟧, function_name: find`,
		`module_path: shop, function_name: ⟦1st⟧`, `module_path: shop, function_name: ⟦a.b⟧`)
	add("QT417", chatModel,
		`provider: google-ai, model_id: gemini, inference_params: {⟦generationConfig⟧: 3}`,
		`provider: gcp-vertex, model_id: gemini, inference_params: {⟦generation_config⟧: []}`,
		`provider: aws-bedrock, model_id: m, inference_params: {⟦inferenceConfig⟧: x}`,
		`provider: aws-bedrock, model_id: m, inference_params: {⟦additional_model_request_fields⟧: x}`,
		`provider: ollama, model_id: m, inference_params: {temperature: 0.1, ⟦options⟧: [1]}`,
		`provider: "langchaingo:mistral", inference_params: {⟦top_p⟧: 0.5}`,
		`provider: openai, inference_params: {⟦stream⟧: true}`)
	add("QT416", chatModel, `provider: "langchaingo:mistral", base_url: ⟦"https://shop.example/api"⟧`)
	add("QT501", vectorIndex,
		`module: qdrant, args: {url: ⟦"localhost:6333"⟧}`, `module: qdrant, args: {url: ⟦"grpc://localhost"⟧}`,
		`module: redis, args: {redis_url: ⟦"localhost:6379"⟧}`, `module: weaviate, args: {url: ⟦"localhost"⟧}`,
		`module: opensearch, args: {endpoint: ⟦"localhost:9200"⟧}`, `module: elasticsearch, args: {es_url: ⟦"ftp://localhost"⟧}`,
		`module: pgvector, args: {embed_dim: ⟦4⟧}`, `module: opensearch, args: {endpoint: "http://localhost:9200", dim: ⟦4⟧}`)
	add("QT500", vectorIndex, `module: ⟦""⟧`)
	add("QT435", func(keys string) string { return mcpTool(keys) }, `command: ⟦""⟧`, `url: ⟦""⟧`)
	add("QT462", step,
		`{type: SQLSource, id: work, query: select a from t, connection: ⟦""⟧, inputs: [], outputs: [answer]}`,
		`{type: SQLSource, id: work, query: select a from t, connection: ⟦"oracle://h/d"⟧, inputs: [], outputs: [answer]}`)
	add("QT462", func(keys string) string {
		return withAuths("{type: basic, id: login, username: u, password: p}", step(keys))
	},
		`{type: SQLSource, id: work, query: select a from t, connection: "sqlite://", auth: ⟦login⟧, inputs: [], outputs: [answer]}`,
		`{type: SQLSource, id: work, query: select a from t, connection: "awsathena://@/d?work_group=w&region_name=x", auth: ⟦login⟧, inputs: [], outputs: [answer]}`)
	add("QT462", step,
		`{type: SQLSource, id: work, query: select a from t, connection: ⟦"awsathena://@/d"⟧, inputs: [], outputs: [answer]}`)
	add("QT460", step,
		`{type: SQLSource, id: work, query: ⟦delete from t⟧, connection: "awsathena://@/d?work_group=w&region_name=x", inputs: [], outputs: [answer]}`)
	add("QT905", step,
		`{type: PromptTemplate, id: work, template: "Hello ⟦{x}⟧", inputs: [question], outputs: [answer]}`,
		`{type: PromptTemplate, id: work, template: "Hello ⟦{question⟧", inputs: [question], outputs: [answer]}`)
	add("QT909", step, `{type: FieldExtractor, id: work, json_path: "$.a⟦[⟧", inputs: [question], outputs: [answer]}`)
	add("QT911", step, `{type: LLMInference, id: work, model: mock, inputs: ⟦[]⟧, outputs: [answer]}`)
	return append(all, refusal{"no output", "QT910", step(`{type: Aggregate, id: work, outputs: ⟦[]⟧}`)},
		refusal{"no input", "QT912", step(`{type: InvokeEmbedding, id: work, model: vectors, inputs: ⟦[]⟧, outputs: [answer]}`)})
}

// step returns an application with one step in its flow.
func step(text string) string {
	return `id: shop
models:
  - {type: Model, id: mock, provider: mock}
  - {type: EmbeddingModel, id: vectors, provider: mock, dimensions: 3}
flows:
  - id: main
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps:
      - ` + text + "\n"
}

// withEntity adds a section with one entity to a document.
func withEntity(section, entity, document string) string {
	return strings.Replace(document, "flows:", section+":\n  - "+entity+"\nflows:", 1)
}

// withAuths adds an auth.
func withAuths(auth, document string) string {
	if strings.Contains(document, "auths:") {
		return strings.Replace(document, "auths:\n", "auths:\n  - "+auth+"\n", 1)
	}
	return withEntity("auths", auth, document)
}

// tool returns an application with a tool of a type.
func tool(kind, keys string) string {
	invoke := `{type: InvokeTool, id: work, tool: find, input_bindings: {question: question}, output_bindings: {answer: answer}}`
	return withEntity("tools", `{type: `+kind+`, id: find, name: find, description: Finds orders, inputs: [{id: question, type: text}], outputs: [{id: answer, type: text}], `+keys+`}`, step(invoke))
}

func mcpTool(keys string) string {
	invoke := `{type: InvokeTool, id: work, tool: find, input_bindings: {question: question}, output_bindings: {answer: answer}}`
	return withEntity("tools", `{type: MCPTool, id: find, tools: [find], `+keys+`}`, step(invoke))
}

func apiTool(keys string) string {
	if !strings.Contains(keys, "endpoint:") {
		keys = `endpoint: "https://shop.example/orders", ` + keys
	}
	return withEntity("auths", `{type: bearer_token, id: token, token: "${TOKEN:-secret}"}
  - {type: api_key, id: key, api_key: "${TOKEN:-secret}"}
  - {type: api_key, id: query, api_key: "${TOKEN:-secret}", query: code}`, tool("APITool", keys))
}

func chatModel(keys string) string {
	document := step(`{type: LLMInference, id: work, model: subject, inputs: [question], outputs: [answer]}`)
	return strings.Replace(document, "models:\n", "models:\n  - {type: Model, id: subject, "+keys+"}\n", 1)
}

func vectorIndex(keys string) string {
	document := step(`{type: VectorSearch, id: work, index: subject, inputs: [question], outputs: [answer]}`)
	document = strings.Replace(document, "{id: answer, type: text}", `{id: answer, type: "list[RAGSearchResult]"}`, 1)
	return withEntity("indexes", `{type: VectorIndex, id: subject, name: shop, embedding_model: vectors, `+keys+`}`, document)
}
