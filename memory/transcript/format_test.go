package transcript_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/transcript"
	"github.com/qtype-dev/qtype/spec/chat"
)

// weather is the conversation that testdata/langchain.py and testdata/LangChain4j.java write.
const weather = `{"role":"system","content":"be brief"}
{"role":"user","content":"weather in Oslo?","name":"ada"}
{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}}]}
{"role":"tool","content":"sunny","name":"weather","tool_call_id":"c1"}
{"role":"user","content":[{"type":"text","text":"and this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}
{"role":"assistant","content":"a picture"}
`

// imported returns the messages of a file in OpenAI's format.
func imported(t *testing.T, file string, f transcript.Format) (string, error) {
	t.Helper()
	m, err := memory.New(memory.Config{ID: "m", Policy: "unbounded", Counter: runes{}}, memory.NewInProcess())
	testkit.Must(t, err)
	session := "s"
	if err := transcript.ImportAll(t.Context(), m, strings.NewReader(file), transcript.Options{Session: &session, Format: f}, nil); err != nil {
		return "", err
	}
	var b strings.Builder
	for e, err := range m.History(t.Context(), "s") {
		testkit.Must(t, err)
		b.WriteString(string(chat.OpenAI(e.Message)) + "\n")
	}
	return b.String(), nil
}

// TestImportAll_OtherPrograms reads what langchain-core 1.7.2, langgraph 1.2.22 and
// langchain4j-core 1.0.1 wrote.
func TestImportAll_OtherPrograms(t *testing.T) {
	for name, want := range map[string]string{
		"langchain-dict.json": weather, "langchain-dumps.json": weather, "langchain4j.json": weather,
		"langgraph-checkpoint.json": "{\"role\":\"user\",\"content\":\"q\"}\n{\"role\":\"assistant\",\"content\":\"hi\"}\n",
	} {
		raw, err := os.ReadFile(filepath.Join("testdata", name))
		testkit.Must(t, err)
		for _, f := range []transcript.Format{"", transcript.LangChain} {
			if name == "langchain4j.json" && f != "" {
				f = transcript.LangChain4j
			}
			got, err := imported(t, string(raw), f)
			testkit.Must(t, err)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
}

// TestImportAll_InstalledPrograms is TestImportAll_OtherPrograms for what is installed.
func TestImportAll_InstalledPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		variable string // its value is the program's folder: that of an environment of Python, or of the jars
		args     func(folder string) []string
	}{
		"langchain": {"QTYPE_LANGCHAIN", func(folder string) []string {
			return []string{filepath.Join(folder, "bin", "python"), "testdata/langchain.py"}
		}},
		"langchain4j": {"QTYPE_LANGCHAIN4J", func(folder string) []string {
			return []string{"java", "-cp", filepath.Join(folder, "*"), "testdata/LangChain4j.java"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := os.Getenv(c.variable)
			if folder == "" {
				t.Skipf("%s is not set to the folder of an installation", c.variable)
			}
			args := c.args(folder)
			out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).Output()
			testkit.Must(t, err)
			for line := range strings.Lines(string(out)) {
				got, err := imported(t, line, "")
				testkit.Must(t, err)
				if got != weather && !strings.Contains(line, "channel_values") {
					t.Errorf("%s was read as %s", line, got)
				}
			}
		})
	}
}

func TestImportAll_Invalid(t *testing.T) {
	for file, want := range map[string]string{
		"[]":  "line 1: it has no messages",
		"[5]": "line 1: message 1: it cannot be read",
		`[{"type":"human","data":{"content":5}}]`:                                                    "line 1: message 1: its content is neither a text nor a list",
		`[{"type":"human","data":{"content":[{"type":"image_url"}]}}]`:                               `line 1: message 1: it has a part of the unknown type "image_url"`,
		`[{"type":"human","data":{"content":[{"type":"image"}]}}]`:                                   `line 1: message 1: a part of type "image" has neither base64 nor url`,
		`[{"type":"remove","data":{"content":"x"}}]`:                                                 `line 1: message 1: unknown type of message "remove"`,
		`[{"lc":1,"type":"constructor","id":["langchain"]}]`:                                         "line 1: message 1: it is not a message of LangChain",
		`[{"type":"tool","data":{"content":"x","tool_call_id":"c"}}]`:                                "line 1: the tool result",
		`[{"type":"CUSTOM","attributes":{}}]`:                                                        `line 1: message 1: unknown type of message "CUSTOM"`,
		`[{"type":"USER","contents":[{"type":"IMAGE","image":{}}]}]`:                                 `line 1: message 1: it has a part of type "IMAGE" that cannot be read`,
		`[{"type":"USER","contents":[{}]}]`:                                                          "line 1: message 1: a part of its content has no type",
		`{"messages":{"a":1}}`:                                                                       "line 1: the object has no list messages",
		`{"checkpoint":{"checkpoint":{"checkpoint":{"checkpoint":{"checkpoint":{"messages":[]}}}}}}`: "line 1: it is not a JSON list of messages",
	} {
		if _, err := imported(t, file, ""); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", file, err, want)
		}
	}
}
