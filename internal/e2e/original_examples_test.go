package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

// examplesVariable is the environment variable with the folder of the source distribution of
// QType (Python) 0.1.18, which has its examples; programVariable has the path of qtype,
// which is built without it.
const (
	examplesVariable = "QTYPE_ORIGINAL_EXAMPLES"
	programVariable  = "QTYPE_PROGRAM"
)

// Services that the examples call.
const (
	bedrockHost = "bedrock-runtime.us-east-1.amazonaws.com"
	openaiHost  = "api.openai.com"
	tokenHost   = "oauth2.googleapis.com"
	vertexHost  = "us-central1-aiplatform.googleapis.com"
	phoenixHost = "localhost:6006"
	qdrantHost  = "localhost:6333"
)

// originalExample is what an example of QType (Python) does.
type originalExample struct {
	rejected string   // the code with which QType (Python) rejects it too; empty if it is valid
	library  bool     // whether it has tools only, and nothing to run
	calls    []string // the services that its flows call
}

func calling(services ...string) originalExample {
	slices.Sort(services)
	return originalExample{calls: services}
}

// originalExamples has every document among the examples. docs/migrate.md describes those
// that are rejected.
func originalExamples() map[string]originalExample {
	offline, bedrock := originalExample{}, calling(bedrockHost)
	return map[string]originalExample{
		"authentication/aws_authentication":               bedrock,
		"conversational_ai/hello_world_chat":              calling(openaiHost),
		"conversational_ai/simple_chatbot":                bedrock,
		"conversational_ai/simple_chatbot_with_auth":      bedrock,
		"data_processing/athena_query":                    {rejected: "QT002"}, // two quotes at the end of a text
		"data_processing/batch_processing":                bedrock,
		"data_processing/cache_step_results":              bedrock,
		"data_processing/collect_results":                 offline,
		"data_processing/dataflow_pipelines":              bedrock,
		"data_processing/decode_json":                     offline,
		"data_processing/explode_items":                   offline,
		"data_processing/invoke_other_flows":              bedrock,
		"data_processing/load_documents":                  offline,
		"data_processing/read_file":                       bedrock,
		"feedback/category_feedback_example":              calling(bedrockHost, phoenixHost),
		"feedback/explode_feedback_example":               calling(bedrockHost, phoenixHost),
		"feedback/rating_feedback_example":                calling(bedrockHost, phoenixHost),
		"feedback/thumbs_feedback_example":                calling(bedrockHost, phoenixHost),
		"invoke_models/create_embeddings":                 bedrock,
		"invoke_models/invoke_embedding_aws":              bedrock,
		"invoke_models/simple_llm_call":                   bedrock,
		"language_features/include_raw":                   offline,
		"language_features/optional_variables":            offline,
		"language_features/ui_hints":                      bedrock,
		"legacy/bedrock/data_analysis_with_telemetry":     {rejected: "QT006"}, // includes a file of another folder
		"legacy/bedrock/hello_world":                      bedrock,
		"legacy/bedrock/hello_world_chat":                 bedrock,
		"legacy/bedrock/hello_world_chat_with_telemetry":  calling(bedrockHost, phoenixHost),
		"legacy/bedrock/hello_world_chat_with_thinking":   bedrock,
		"legacy/bedrock/hello_world_completion":           bedrock,
		"legacy/bedrock/hello_world_completion_with_auth": bedrock,
		"legacy/bedrock/simple_agent_chat":                {rejected: "QT006"}, // includes a file of another folder
		"legacy/chat_with_langfuse":                       calling(openaiHost, "cloud.langfuse.com"),
		"legacy/data_processor":                           offline,
		"legacy/echo/debug_example":                       offline,
		"legacy/echo/prompt":                              offline,
		"legacy/echo/test":                                {rejected: "QT110"}, // has the type number
		"legacy/echo/video":                               offline,
		"legacy/field_extractor_example":                  offline,
		"legacy/multi_flow_example":                       calling(openaiHost),
		"legacy/openai/hello_world_chat":                  calling(openaiHost),
		"legacy/openai/hello_world_chat_with_telemetry":   calling(openaiHost, phoenixHost),
		"legacy/rag":                                     calling(bedrockHost, qdrantHost, "huggingface.co"),
		"legacy/time_utilities":                          {rejected: "QT006"}, // includes a file of another folder
		"legacy/vertex/hello_world_chat":                 calling(tokenHost, vertexHost),
		"legacy/vertex/hello_world_completion":           calling(tokenHost, vertexHost),
		"legacy/vertex/hello_world_completion_with_auth": calling(tokenHost, vertexHost),
		"observability_debugging/trace_with_arize":       calling(bedrockHost, "otlp.arize.com"),
		"observability_debugging/trace_with_phoenix":     calling(bedrockHost, phoenixHost),
		"rag/recipe_chatbot":                             calling(bedrockHost, qdrantHost),
		"research_assistant/research_assistant":          calling(bedrockHost, "api.tavily.com"),
		"research_assistant/tavily":                      {library: true},
		"tutorials/01_hello_world":                       calling(openaiHost),
		"tutorials/02_conversational_chat":               bedrock,
		"tutorials/03_structured_data":                   bedrock,
		"tutorials/04_tools_and_function_calling":        offline,
	}
}

// originalInput returns the value of an input: the one that the documentation of QType
// (Python) has if the flow needs a particular one, else any of its type.
func originalInput(t *testing.T, f *spec.Flow, v *spec.Variable) any {
	t.Helper()
	given := map[string]any{
		"complex_data": `{"parsed_data":{"data":{"value":"deep"}}}`,
		"data_record":  map[string]any{"timestamp": "now", "metadata": "none", "items": []string{"a", "b"}},
		"file_path":    "examples/data_processing/sample_documents.jsonl",
		"json_string":  `{"name":"Lamp","price":19.5}`,
		"output_file":  "report.jsonl",
		"output_path":  "results.parquet",
		"person_data":  map[string]any{"name": "Ann", "age": 30},
		"product_list": `{"products":[{"price":50},{"price":150}]}`,
		"topics_json":  `{"topics":["tea","salt"]}`,
		"user_profile": `{"email":"hello@domain.com"}`,
	}
	if f.ID == "process_customers" {
		return "examples/legacy/data/customers.csv"
	}
	if value, ok := given[v.ID]; ok {
		return value
	}
	switch v.Type.String() {
	case "text":
		return "A text about " + strings.ReplaceAll(v.ID, "_", " ") + "."
	case "int":
		return 3
	case "video":
		return "data:video/mp4;base64,AAAAGGZ0eXBtcDQyAAAAAGlzb21tcDQy"
	case "list[text]":
		return []string{"one", "two"}
	case "ChatMessage":
		return map[string]any{"role": "user", "blocks": []any{map[string]any{"type": "text", "content": "What is in the soup?"}}}
	}
	t.Fatalf("no value for %s of type %s", v.ID, v.Type)
	return nil
}

// TestOriginalExamples runs all examples of QType (Python) with qtype, unmodified, with
// servers in the place of the services that they call: only the environment differs.
func TestOriginalExamples(t *testing.T) {
	folder := os.Getenv(examplesVariable)
	if folder == "" {
		t.Skipf("SKIPPED, NOT TESTED: set %s to the source distribution of QType (Python) 0.1.18", examplesVariable)
	}
	c := &originalRun{clouds: startClouds(t), program: os.Getenv(programVariable), folder: t.TempDir()}
	c.prepare(t, folder)
	examples, counts := originalExamples(), map[string]int{}
	var found []string
	testkit.Must(t, filepath.WalkDir(filepath.Join(c.folder, "examples"), func(path string, _ fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(path, ".qtype.yaml"); ok {
			found = append(found, strings.TrimPrefix(name, filepath.Join(c.folder, "examples")+string(filepath.Separator)))
		}
		return err
	}))
	if d := cmp.Diff(slices.Sorted(maps.Keys(examples)), found); d != "" {
		t.Fatalf("the examples differ from the table (-table +folder):\n%s", d)
	}
	for _, name := range found {
		t.Run(name, func(t *testing.T) {
			example := examples[name]
			switch c.validate(t, name, example); {
			case example.rejected != "":
				counts["rejected by both"]++
			case example.library:
				counts["without flows"]++
			default:
				c.runFlows(t, name, example)
				counts["run"]++
			}
		})
	}
	t.Logf("%d documents: %v", len(found), counts)
}

// originalRun runs examples in a folder.
type originalRun struct {
	*clouds
	program, folder string
	env             []string
}

// prepare copies the examples and what they read, and sets the environment.
func (c *originalRun) prepare(t *testing.T, from string) {
	t.Helper()
	for _, name := range []string{"examples", "common", "docs"} {
		testkit.Must(t, os.CopyFS(filepath.Join(c.folder, name), os.DirFS(filepath.Join(from, name))))
	}
	recipes := filepath.Join(c.folder, "chowdown", "_recipes")
	testkit.Must(t, os.MkdirAll(recipes, 0o750))
	testkit.Must(t, os.WriteFile(filepath.Join(recipes, "soup.md"), []byte("# Soup\n\nCarrots and onions."), 0o600))
	if c.program == "" {
		c.program = filepath.Join(t.TempDir(), "qtype")
		if out, err := testkit.Command(t, "go", "build", "-o", c.program, "./cmd/qtype").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	credentials := testkit.WriteFile(t, "credentials", "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = secret\nregion = us-east-1\n")
	for name, value := range map[string]string{
		"HOME": t.TempDir(), "PATH": os.Getenv("PATH"), "HTTPS_PROXY": c.proxy, "HTTP_PROXY": c.proxy, "QTYPE_TRUST_PROXY": "1", "SSL_CERT_FILE": c.ca,
		"AWS_SHARED_CREDENTIALS_FILE": credentials, "AWS_CONFIG_FILE": credentials, "AWS_PROFILE": "default", "AWS_REGION": "us-east-1",
		"GOOGLE_APPLICATION_CREDENTIALS": serviceAccount(t), "OPENAI_KEY": "openai-key", "OPENAI_API_KEY": "openai-key",
		"LANGFUSE_PUBLIC_KEY": "public", "LANGFUSE_SECRET_KEY": "secret", "ARIZE_API_KEY": "arize-key", "ARIZE_SPACE_ID": "space", "TAVILY-API_BEARER": "tavily-key",
	} {
		c.env = append(c.env, name+"="+value)
	}
}

// command runs qtype in the folder and returns what it wrote.
func (c *originalRun) command(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := testkit.Command(t, c.program, args...)
	var out, problems bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.folder, c.env, &out, &problems
	err = cmd.Run()
	return out.String(), problems.String(), err
}

func document(name string) string {
	return filepath.Join("examples", filepath.FromSlash(name)+".qtype.yaml")
}

// validate checks that a document is accepted or rejected as in QType (Python).
func (c *originalRun) validate(t *testing.T, name string, example originalExample) {
	t.Helper()
	stdout, stderr, err := c.command(t, "validate", document(name))
	if failed := new(exec.ExitError); example.rejected == "" && err != nil || example.rejected != "" && !errors.As(err, &failed) {
		t.Fatalf("validate: %v\n%s%s", err, stdout, stderr)
	}
	if example.rejected != "" && !strings.Contains(stdout+stderr, "error["+example.rejected+"]") {
		t.Errorf("no %s in\n%s%s", example.rejected, stdout, stderr)
	}
}

// runFlows runs all flows, those without inputs first: they fill the indexes.
func (c *originalRun) runFlows(t *testing.T, name string, example originalExample) {
	t.Helper()
	program, list := qtype.Check(t.Context(), filepath.Join(c.folder, document(name)))
	if list.Errors() > 0 {
		t.Fatal(list)
	}
	flows := slices.Clone(program.Document.Application.Flows)
	slices.SortStableFunc(flows, func(a, b *spec.Flow) int { return min(len(a.Inputs), 1) - min(len(b.Inputs), 1) })
	c.called()
	for _, f := range flows {
		inputs := map[string]any{}
		for _, ref := range f.Inputs {
			inputs[ref.ID] = originalInput(t, f, ref.To)
		}
		raw, err := json.Marshal(inputs)
		testkit.Must(t, err)
		stdout, stderr, err := c.command(t, "run", document(name), "--flow", f.ID, "--input", string(raw), "--session", "one", "--format", "jsonl")
		if err != nil {
			t.Errorf("%s: %v\n%s%s", f.ID, err, stdout, stderr)
			continue
		}
		if strings.Contains("\n"+stderr, "\nwarning: ") { // such as traces that were not sent
			t.Errorf("%s: %s", f.ID, stderr)
		}
		checkRows(t, f, stdout)
	}
	if d := cmp.Diff(example.calls, c.called()); d != "" {
		t.Errorf("services called (-want +got):\n%s", d)
	}
}

// checkRows checks that no row failed and that each output has a value in some row.
func checkRows(t *testing.T, f *spec.Flow, lines string) {
	t.Helper()
	has := map[string]bool{}
	for line := range strings.Lines(lines) {
		var row map[string]any
		testkit.Must(t, json.Unmarshal([]byte(line), &row))
		if row["error"] != nil {
			t.Errorf("%s: %v", f.ID, row["error"])
		}
		for name, v := range row {
			has[name] = has[name] || v != nil
		}
	}
	for _, ref := range f.Outputs {
		if !has[ref.ID] {
			t.Errorf("%s: no value of %s in\n%s", f.ID, ref.ID, lines)
		}
	}
}
