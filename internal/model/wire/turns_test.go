package wire_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/spec/chat"
)

// System messages follow a message of the user or results of tools, at places that later messages do not change.
func TestTurnRules_SystemWithin(t *testing.T) {
	rules := wire.TurnRules{SystemWithin: true}
	for given, want := range map[string]string{
		"system:s user:q assistant:a system:d user:r": "system:s user:q assistant:a user:r system:d",
		"user:q system:d assistant:a":                 "user:q system:d assistant:a",
		"user:q system:d system:e user:r assistant:a": "user:q user:r system:d+e assistant:a",
		"user:q assistant:call system:d tool:r":       "user:q assistant:call tool:r system:d",
		"user:q assistant:a system:d":                 "user:q assistant:a user:(continue) system:d",
		"user:q assistant:a developer:d assistant:b":  "user:q assistant:a assistant:b user:(continue) system:d",
		"system:s system:d":                           "system:s system:d",
	} {
		var messages []chat.Message
		for _, field := range strings.Fields(given) {
			role, text, _ := strings.Cut(field, ":")
			messages = append(messages, chat.Text(chat.Role(role), text))
		}
		var lines []string
		for _, m := range rules.Order(messages) {
			lines = append(lines, string(m.Role)+":"+strings.ReplaceAll(m.Text(), "\n\n", "+"))
		}
		if got := strings.Join(lines, " "); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}

// TestTurnRules writes messages as role:text.
func TestTurnRules(t *testing.T) {
	all := wire.TurnRules{UserFirst: true, UserLast: true, NoBlank: true, Answered: true}
	for given, want := range map[string]string{
		"system:s user:q":               "system:s user:q",
		"user:q assistant:a user:q":     "user:q assistant:a user:q",
		"system:s assistant:a user:q":   "system:s user:(earlier messages are omitted) assistant:a user:q",
		"assistant:call tool:r":         "user:(earlier messages are omitted) assistant:call tool:r",
		"tool:r user:q":                 "user:(earlier messages are omitted) tool:r assistant:(the answer is omitted) user:q",
		"user:q assistant:a":            "user:q assistant:a user:(continue)",
		"user:q model:a":                "user:q model:a user:(continue)",
		"user:":                         "user:(empty message)",
		"user:q assistant:a user:":      "user:q assistant:a user:(empty message)",
		"user: user:q":                  "user: user:q",
		"user:q user:":                  "user:q user:",
		"user: user:":                   "user: user:(empty message)",
		"system:s":                      "system:s user:(continue)",
		"":                              "user:(continue)",
		"assistant:a":                   "user:(earlier messages are omitted) assistant:a user:(continue)",
		"user:q assistant:call tool:ok": "user:q assistant:call tool:ok",
	} {
		var messages []chat.Message
		for _, field := range strings.Fields(given) {
			role, text, _ := strings.Cut(field, ":")
			m := chat.Text(chat.Role(role), text)
			if text == "item" {
				m.Blocks[0].Type = chat.ItemType
			}
			messages = append(messages, m)
		}
		show := func(all []chat.Message) string {
			var lines []string
			for _, m := range all {
				lines = append(lines, string(m.Role)+":"+m.Blocks[0].Text)
			}
			return strings.Join(lines, " ")
		}
		before := show(messages)
		if got := show(all.Order(messages)); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
		if show(messages) != before {
			t.Errorf("%q: the messages of the conversation were changed", given)
		}
		if got := show(wire.TurnRules{}.Order(messages)); got != before {
			t.Errorf("%q without rules: got %q", given, got)
		}
	}
}
