package loader_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestSyntaxErrors: each has the exact place, a sentence and mostly advice.
func TestSyntaxErrors(t *testing.T) {
	for text, want := range map[string]string{
		"id: a\n  b: c":                `2:4 a key and value are not allowed here; check the indentation`,
		"id: a: b":                     `1:6 a key and value are not allowed here`,
		"id: 'a\nb: c\n":               `1:5 a quoted text is not closed; the opening quote is here`,
		"id: \"a\nb: c\n":              `1:5 a quoted text is not closed`,
		"id: [a\nb: c":                 `2:2 the list in brackets is not continued or closed`,
		"id: {a: b\nc: d":              `the mapping in braces is not continued or closed`,
		"id: [${A}]":                   `the list in brackets is not continued or closed`,
		"\tid: a":                      `1:1 the indentation contains a tab; indent with spaces`,
		"id:\n\t- a":                   `2:1 the indentation contains a tab`,
		"id: @a":                       "1:5 a value cannot start with '@'; put the text in quotes",
		"id: `a":                       "1:5 a value cannot start with '`'",
		"id: %a":                       "1:5 a value cannot start with '%'",
		"id: \"\\q\"":                  `1:6 this escape is unknown`,
		"id: *missing":                 `1:5 the alias *missing has no anchor`,
		"- a\nb: c":                    `2:1 this does not belong to the list before it`,
		"a: b\n- c":                    `2:1 `,
		"id: }":                        `1:5 a value is expected here`,
		"id: a - b\nc:   - d":          `2:6 a list item is not allowed here`,
		"a\nb: c":                      `1:1 a key needs a colon; write a:`,
		"id: a\nmemories\n  - id: b\n": `2:1 a key needs a colon; write memories:`,
		"a:\n  - model\n      id: b\n": `2:5 a key needs a colon; write model:`,
		"id: some\n  text\n  b: c\n":   `3:4 a key and value are not allowed here`,
		"id: a\n>>>>>>> main\nb: c\n":  `2:1 >>>>>>> is a mark of a merge conflict; keep one of the versions`,
		"id: a\r\n=======\r\nb: c\n":   `2:1 ======= is a mark of a merge conflict; keep one of the versions`,
		"id: a\n||||||| base\nb: c\n":  `2:1 ||||||| is a mark of a merge conflict; keep one of the versions`,
		"id: a\n<<<<<<< HEAD\nb: c\n=======\nb: d\n>>>>>>> x\n": `2:1 <<<<<<< is a mark of a merge conflict; keep one of the versions`,
		"id: !a!b c":                      `1:5 this tag is unknown`,
		"id: |x\n  a":                     `the head of this block of text is wrong`,
		"id: !!int five":                  `1:11 this is a text, but the tag !!int requires a number`,
		"id: !!binary '*'":                `1:14 the tag !!binary requires base64`,
		"id: a\nb\nc: d":                  `2:1 a key without a value; ":" is expected after it`,
		"id: a\nb:c\nd: e":                `2:2 a colon needs a space after it; write b: …`,
		"id: a\nb：c\nd: e":                `2:2 a colon needs a space after it; write b: …`,
		"a:\n  -b: c\n   d: e":            `2:3 a dash needs a space after it; write - b`,
		"id: {a} is good\n":               `1:9 the value in brackets or braces has ended before this; put a text`,
		"- {a: b}}\n":                     `1:9 there is nothing open that "}" closes`,
		"a: [b]]\nc: d":                   `1:7 there is nothing open that "]" closes`,
		"id: 'it's me'":                   `1:9 the quoted text has ended before this; write ''`,
		"id: \"a\" b":                     `1:9 the quoted text has ended before this`,
		"a:\n\u00a0- {b: c, d: e}\n":      `2:1 the character U+00A0 is not a space in YAML; replace it with a space`,
		"id: a\nb:\u00a0c\nd: e":          `2:3 the character U+00A0 is not a space`,
		"id: a\ndescription: \"\\ud800\"": `this escape is not a valid character`,
	} {
		_, list := load(t, text)
		if len(list) == 0 {
			t.Errorf("%q: nothing is reported", text)
			continue
		}
		d := list[0]
		got := fmt.Sprintf("%d:%d %s; %s", d.Span.Start.Line, d.Span.Start.Column, d.Message, d.Hint)
		if d.Code != "QT002" || d.Span.Start.Line == 0 || !strings.Contains(got, want) || goWords.MatchString(d.Message+d.Hint) {
			t.Errorf("%q: got %s %s, want %s", text, d.Code, got, want)
		}
	}
}
