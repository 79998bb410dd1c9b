package loader_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestNothing checks values that are a comment or an anchor by mistake: errors where a word is expected.
func TestNothing(t *testing.T) {
	for text, want := range map[string]string{
		"id: a\ndescription: #1 shop\n":                                         `2:1 "description" is empty: # starts a comment; put a text that starts with # in quotes or leave the key out`,
		"id: a\ndescription: &shop\n":                                           `2:14 "description" is empty: & starts an anchor; put a text that starts with & in quotes or leave the key out`,
		"id: a\ndescription: &shop # good\n":                                    `2:14 "description" is empty: & starts an anchor; put a text that starts with & in quotes or leave the key out`,
		"id: #1\n":                                                              `1:1 "id" is empty: # starts a comment; put a text that starts with # in quotes`,
		"id: a\nmemories:\n  - id: m\n    token_limit: # 5000\n":                `4:5 "token_limit" is empty: # starts a comment; put a text that starts with # in quotes or leave the key out`,
		"- {type: Model, id: m, provider: openai, auth: # a key\n}":             `1:42 "auth" is empty: # starts a comment; put a text that starts with # in quotes or leave the key out`,
		"id: a\nflows:\n  - id: f\n    steps: [{type: Agent, id: s, model:}]\n": `4:34 "model" is empty; give it a value`,
		"id: a\ndescription:\n":                                                 "",
		"id: a\ndescription: null # no text\n":                                  "",
		"id: a\nmemories: # none\ntools: &none\n":                               "",
		"id: a\nmemories: # two\n  - id: m\n    token_limit: # ok\n      5":     "",
	} {
		_, list := load(t, text)
		got := ""
		if len(list) > 0 {
			d := list[0]
			got = fmt.Sprintf("%d:%d %s; %s", d.Span.Start.Line, d.Span.Start.Column, d.Message, d.Hint)
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// TestQuotedInclude checks a tag in quotes, anywhere in a document.
func TestQuotedInclude(t *testing.T) {
	for _, text := range []string{"id: a\nreferences:\n  - \"!include b.yaml\"\n", "id: a\nmemories: '!include m.yaml'\n", "id: a\ndescription: '!include_raw text.txt'\n"} {
		_, list := load(t, text)
		if len(list) != 1 || list[0].Code != "QT006" || list[0].Message != "in quotes, this tag is only a text" || len(list[0].Fixes) != 1 || !strings.HasPrefix(list[0].Fixes[0].NewText, "!include") {
			t.Errorf("%q: %v", text, list)
		}
	}
	for _, text := range []string{"id: a\ndescription: '!include is a tag'\n", "id: a\ndescription: |\n  !include_raw text.txt of the folder\n"} {
		if _, list := load(t, text); len(list) != 0 {
			t.Errorf("%q: %v", text, list)
		}
	}
}
