package server_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// shownChat is what a client of the AI SDK has at the end of a scenario.
type shownChat struct {
	Status, Error, Exception string
	Messages                 []struct {
		Role  string
		Parts []string
	}
}

// lines returns the messages with their parts, one line each.
func (c shownChat) lines() []string {
	var lines []string
	for _, m := range c.Messages {
		parts := slices.DeleteFunc(slices.Clone(m.Parts), func(p string) bool { return p == "step-start" || strings.HasPrefix(p, "data-") })
		lines = append(lines, m.Role+": "+strings.Join(parts, " | "))
	}
	return lines
}

// echoed is the answer of the mock to a conversation with n messages.
func echoed(n, tokens, newest string) string {
	return "assistant: text: [mock] I received " + n + " (" + tokens + " tokens). The newest one: \"" + newest + "\""
}

// TestUIStream_Client runs the chat class of the AI SDK with its transport. Version 5 has no
// approvals.
func TestUIStream_Client(t *testing.T) {
	for version, scenarios := range map[string][]string{
		"QTYPE_AI_SDK_5": {"turns", "regenerate", "edit", "shorten", "editAfterFailure", "newestOnly", "clientTool"}, "QTYPE_AI_SDK": nil, "QTYPE_AI_SDK_7": nil,
	} {
		t.Run(version, func(t *testing.T) {
			checkUIStream(t, testkit.External(t, version, "a node_modules folder with ai"), scenarios)
		})
	}
}

// checkUIStream runs scenarios with the package ai of a folder, by default all.
func checkUIStream(t *testing.T, libraries string, scenarios []string) {
	t.Helper()
	s := serve(t)
	node := testkit.Command(t, "node", append([]string{"testdata/ai_client.mjs", s.URL}, scenarios...)...)
	node.Env = append(os.Environ(), "QTYPE_AI_SDK="+libraries)
	var stderr bytes.Buffer
	node.Stderr = &stderr
	out, err := node.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var shown map[string]json.RawMessage
	if err := json.Unmarshal(out, &shown); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	read := func(name, part string) shownChat {
		raw := shown[name]
		if part != "" {
			var parts map[string]json.RawMessage
			_ = json.Unmarshal(raw, &parts)
			raw = parts[part]
		}
		var c shownChat
		if err := json.Unmarshal(raw, &c); err != nil || c.Exception != "" {
			t.Errorf("%s %s: %v %s\n%s", name, part, err, c.Exception, shown[name])
		}
		return c
	}
	const slow = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
	for _, tt := range []struct {
		name, part, status string
		want               []string
	}{
		{"turns", "", "ready", []string{"user: text: one", echoed("1 message", "5", "one"), "user: text: two", echoed("3 messages", "33", "two"),
			"user: text: three", echoed("5 messages", "61", "three")}},
		{"reasoning", "", "ready", []string{"user: text: think", "assistant: reasoning: Let me think about it. | text: I have thought.",
			"user: text: and again", echoed("3 messages", "19", "and again")}},
		{"tool", "", "ready", []string{"user: text: look up parcel",
			`assistant: tool-look_up output-available {"word":"parcel"} {"meaning":"parcel is a word"} | text: The desk has  answered.`,
			"user: text: thanks", echoed("5 messages", "48", "thanks")}},
		{"clientTool", "", "ready", []string{"user: text: where am I", `assistant: tool-locate output-available {} {"city":"Utrecht"} | text: The desk has  answered.`,
			"user: text: thanks", echoed("5 messages", "40", "thanks")}},
		{"approval", "", "ready", []string{"user: text: refund order 7",
			`assistant: tool-refund output-available {"order":"7"} {"receipt":"R7"} | text: The desk has  answered.`}},
		{"rejection", "", "ready", []string{"user: text: refund order 8",
			`assistant: tool-refund output-denied {"order":"8"} null | text: The desk has  answered.`}},
		{"failure", "failed", "error", []string{"user: text: fail", "assistant: "}},
		{"failure", "after", "ready", []string{"user: text: fail", "assistant: ", "user: text: again", echoed("1 message", "5", "again")}},
		{"file", "", "ready", []string{"user: file image/png 34 | text: see", echoed("1 message", "5", "see")}},
		{"picture", "", "ready", []string{"user: file image/png 34 | text: see", "assistant: file image/png 34 | text: see"}},
		{"regenerate", "", "ready", []string{"user: text: first", echoed("1 message", "5", "first"), "user: text: second", echoed("3 messages", "33", "second")}},
		{"edit", "", "ready", []string{"user: text: first", echoed("1 message", "5", "first"), "user: text: other", echoed("3 messages", "33", "other"),
			"user: text: more", echoed("5 messages", "61", "more")}},
		{"shorten", "shortened", "ready", []string{"user: text: first", echoed("1 message", "5", "first"), "user: text: after the first", echoed("3 messages", "35", "after the first")}},
		{"shorten", "cleared", "ready", []string{"user: text: after nothing", echoed("1 message", "6", "after nothing")}},
		{"editAfterFailure", "", "ready", []string{"user: text: first", echoed("1 message", "5", "first"), "user: text: fail", "assistant: ",
			"user: text: second", echoed("3 messages", "33", "second"), "user: text: other", echoed("5 messages", "61", "other")}},
		{"newestOnly", "", "ready", []string{"user: text: first", echoed("1 message", "5", "first"), "user: text: second", echoed("3 messages", "33", "second")}},
		{"resume", "second", "ready", []string{"user: text: slow", "assistant: text: " + slow}},
		{"resume", "nothing", "ready", nil},
		{"sessionInputs", "first", "ready", []string{"user: text: hello", echoed("1 message", "7", "French: hello")}},
		{"sessionInputs", "later", "ready", []string{"user: text: hello again", echoed("1 message", "8", "French: hello again")}},
	} {
		if _, ran := shown[tt.name]; !ran {
			continue
		}
		got := read(tt.name, tt.part)
		if got.Status != tt.status || !slices.Equal(got.lines(), tt.want) {
			t.Errorf("%s %s: status %s %s\n got %s\nwant %s", tt.name, tt.part, got.Status, got.Error, strings.Join(got.lines(), "\n     "), strings.Join(tt.want, "\n     "))
		}
	}
	if scenarios != nil {
		return
	}
	if failed := read("failure", "failed"); !strings.Contains(failed.Error, "the model is tired") {
		t.Errorf("failure: error %q", failed.Error)
	}
	if stopped := read("stop", ""); stopped.Status != "ready" || strings.Contains(strings.Join(stopped.lines(), ""), "twenty") {
		t.Errorf("stop: %+v", stopped)
	}
}
