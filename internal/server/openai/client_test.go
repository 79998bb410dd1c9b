package openai_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// heartbeat is short enough for a stream to begin before the mock answers slowly.
const heartbeat = 20 * time.Millisecond

// runClient runs a program against a server with keys, and returns what it has printed.
// location is the environment variable with the folder of OpenAI's package.
func runClient(t *testing.T, location, file string, command ...string) map[string]any {
	t.Helper()
	folder := os.Getenv(location)
	if _, err := os.Stat(filepath.Join(folder, "openai")); folder == "" || err != nil {
		if os.Getenv("QTYPE_CI") != "" {
			t.Fatalf("%s has no package openai", location)
		}
		t.Skipf("SKIPPED: set %s to a folder with the package openai, as .ci/run does", location)
	}
	return runProgram(t, []string{"PYTHONPATH=" + folder, "QTYPE_OPENAI_NODE=" + folder}, append(command, file)...)
}

// runProgram runs a command with the address of a server with keys, and returns what it has printed.
func runProgram(t *testing.T, env []string, command ...string) map[string]any {
	t.Helper()
	control, err := access.New(access.Config{Keys: "ada:ada-key-0123456789,boss:boss-key-0123456789"})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, nil, server.Options{Access: control, Heartbeat: heartbeat})
	cmd := testkit.Command(t, command[0], append(command[1:], s.URL)...)
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var results map[string]any
	if err := json.Unmarshal(out, &results); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return results
}

// object and list are values of JSON.
type (
	object = map[string]any
	list   = []any
)

// echoed is the answer of the mock.
func echoed(messages, tokens, newest string) string {
	return "[mock] I received " + messages + " messages (" + tokens + " tokens). The newest one: \"" + newest + "\""
}

// arrived is the answer after calls.
const arrived = "All results have arrived."

// expected are the results of both packages.
func expected() object {
	return object{
		"chat":       list{echoed("3", "21", "one"), echoed("5", "49", "two"), echoed("7", "77", "three")},
		"session":    list{echoed("2", "14", "a"), echoed("4", "42", "b"), echoed("6", "70", "c")},
		"inputs":     "[mock] I received 1 message (9 tokens). The newest one: \"Ada has 5 stars\"",
		"tools":      object{"rounds": list{"tool_calls", "stop"}, "text": arrived, "calls": 2.0},
		"models":     object{"ids": list{"talk", "brief", "once", "plain", "work", "approve", "greet", "late", "vectors"}, "one": "model"},
		"embeddings": object{"dimensions": list{8.0, 8.0}, "tokens": 3.0, "same": true},
		"abort":      "one ",
	}
}

var streamed = object{"texts": list{echoed("2", "14", "one"), echoed("4", "42", "two")}, "usage": list{33.0, 61.0}}

// responseTexts are the answers of three responses, each after the one before.
var responseTexts = list{echoed("3", "21", "one"), echoed("4", "42", "two"), echoed("6", "70", "three")}

// failures are the classes of errors.
func failures(more object) object {
	all := object{"param": "n"}
	for _, name := range []string{"BadRequestError", "AuthenticationError", "PermissionDeniedError", "NotFoundError", "ConflictError",
		"UnprocessableEntityError", "RateLimitError", "InternalServerError"} {
		all[name] = name
	}
	maps.Copy(all, more)
	return all
}

var eight = list{"0", "1", "2", "3", "4", "5", "6", "7"}

// compare compares each scenario.
func compare(t *testing.T, got, want map[string]any) {
	t.Helper()
	names := slices.Sorted(maps.Keys(want))
	if diff := cmp.Diff(names, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("scenarios: %s", diff)
	}
	for _, name := range names {
		if diff := cmp.Diff(want[name], got[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestClient_Python uses OpenAI's package for Python.
func TestClient_Python(t *testing.T) {
	got := runClient(t, "QTYPE_OPENAI_PYTHON", "testdata/client.py", "python3")
	want := expected()
	maps.Copy(want, object{
		"chat_stream":      streamed,
		"chat_helper":      object{"kinds": list{"chunk", "content.delta", "content.done"}, "text": "I have thought.", "reasoning": "Let me think."},
		"tools_stream":     object{"names": list{"get_weather"}, "parsed": object{"city": "Rome"}, "reasons": list{"tool_calls", "stop"}, "text": arrived},
		"responses":        object{"texts": responseTexts, "same": true, "status": "completed", "usage": true},
		"responses_runner": object{"texts": list{arrived, arrived}, "called": list{"Oslo", "Oslo", "Rome", "Rome"}},
		"errors": failures(object{"limit": object{"retry-after": "1", "code": "rate_limit_exceeded", "type": "rate_limit_error"},
			"responses": "BadRequestError", "retrieve": "NotFoundError"}),
		"retries":      "RateLimitError",
		"stream_error": object{"error": "model breaker: HTTP 400: [mock] the model is broken late", "texts": list{"", "", "", "", "I ", "have ", "thought."}},
		"asynchronous": eight,
	})
	compare(t, got, want)
}

// TestClient_Node uses OpenAI's package for Node.
func TestClient_Node(t *testing.T) {
	got := runClient(t, "QTYPE_OPENAI_NODE", "testdata/client.mjs", "node")
	want := expected()
	ran := object{"text": arrived, "called": list{"Oslo", "Rome"}}
	maps.Copy(want, object{
		"chatStream": streamed,
		"chatHelper": object{"text": "I have thought.", "deltas": "I have thought.", "reason": "stop"},
		"toolRunner": ran, "toolRunnerStream": ran,
		"responses":      object{"texts": responseTexts, "same": true, "status": "completed"},
		"responsesTools": object{"calls": list{"get_weather", "get_weather"}, "text": arrived},
		"errors":         failures(object{"limit": object{"after": "1", "code": "rate_limit_exceeded", "type": "rate_limit_error"}}),
		"streamError":    object{"error": "model breaker: HTTP 400: [mock] the model is broken late", "code": "model_failed"},
		"concurrent":     eight,
	})
	compare(t, got, want)
}

// TestClient_Structured asks for structured answers and calls with instructor, LangChain, pydantic-ai
// and OpenAI's package.
func TestClient_Structured(t *testing.T) {
	python := testkit.External(t, "QTYPE_OPENAI_CLIENTS", "a Python with instructor, langchain-openai and pydantic-ai")
	got := runProgram(t, nil, python, "testdata/structured.py")
	const bo = `{"age": 3, "name": "Bo"}`
	compare(t, got, object{
		"parse": bo, "responses.parse": bo,
		"instructor tools": bo, "instructor json": bo, "instructor json_schema": bo,
		"langchain json_schema": bo, "langchain json_mode": bo, "langchain function_calling": bo,
		"pydantic-ai tool": bo, "pydantic-ai native": bo, "pydantic-ai prompted": bo,
		"tools":   object{"langchain": list{"get_weather", object{"city": "Rome"}}, "pydantic_ai": arrived},
		"unknown": "num_ctx, repeat_last_n",
	})
}
