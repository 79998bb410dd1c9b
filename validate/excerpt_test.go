package validate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/validate"
)

// TestPlaces_InTexts checks that an error in a part of a text is reported at that part, for
// all forms of the text in the document.
func TestPlaces_InTexts(t *testing.T) {
	const head = "id: app\nflows:\n  - id: main\n    variables: [{id: name, type: text}, {id: answer, type: text}]\n    inputs: [name]\n    outputs: [answer]\n    steps:\n      - id: work\n        inputs: [name]\n        outputs: [answer]\n"
	template := func(text string) string {
		return head + "        type: PromptTemplate\n        template: " + text + "\n"
	}
	query := func(text string) string {
		return head + "        type: SQLSource\n        connection: \"sqlite:///a.db\"\n        query: " + text + "\n"
	}
	extract := func(text string) string {
		return head + "        type: FieldExtractor\n        json_path: " + text + "\n"
	}
	set := func(text string) string {
		return strings.Replace(head, "        outputs: [answer]\n", "", 1) + "        type: Transform\n        set: {answer: " + text + "}\n"
	}
	for name, test := range map[string]struct{ document, code, want string }{
		"single quotes":     {template(`'It''s {nmae}'`), "QT905", "12:26 {nmae}"},
		"quotes over lines": {template("'It''s {nmae}\n          and {name}'"), "QT905", "12:26 {nmae}"},
		"twice over lines":  {template("\"{name} {nmae}\n          and {nmae} \\\"\""), "QT905", "12:27 {nmae}"},
		"wide characters":   {template(`"日本😀 {nmae}"`), "QT905", "12:24 {nmae}"},
		"an escape":         {template(`"{\x6emae} {name}"`), "QT905", `12:19 "{\x6emae} {name}"`},
		"a parameter":       {query(`"select ':nmae' as answer, '😀' || :nmae"`), "QT461", "13:51 nmae"},
		"a block": {query("|\n          select :name as answer -- :nmae\n          where :nmae = 1"), "QT461",
			"15:18 nmae"},
		"a query":          {query(`"select 'x as answer"`), "QT460", "13:24 '"},
		"a long name":      {query(`select 'é' as answer where :nmae is null`), "QT461", "13:44 nmae"},
		"a name of a tool": {"id: app\ntools:\n  - {type: APITool, id: t, name: t, description: d, endpoint: \"https://a.example\", names: {none: other}}\n", "QT463", "3:92 none"},
		"a path":           {extract(`"$.items[abc].name"`), "QT909", "12:29 a"},
		"a path in quotes": {extract(`'$[''its''].a['`), "QT909", "12:33 ["},
		"a part of a path": {extract(`$.name + $.nmae.size + $.name.!`), "QT909", "12:50 !"},
		"an overflow":      {set(`"name + string(99999999999999999999)"`), "QT423", "11:38 99999999999999999999"},
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			_, list := checked(t, test.document)
			for _, d := range list {
				if d.Code != test.code {
					continue
				}
				lines := strings.Split(test.document, "\n")
				line := []rune(lines[d.Span.Start.Line-1])
				end := len(line)
				if d.Span.End.Line == d.Span.Start.Line {
					end = d.Span.End.Column - 1
				}
				got := strings.TrimPrefix(d.Span.String(), "app.qtype.yaml:") + " " + string(line[d.Span.Start.Column-1:end])
				if found = found || got == test.want; got != test.want {
					t.Logf("got %s %q", d.Message, got)
				}
			}
			if !found {
				t.Errorf("%s is not reported at %q", test.code, test.want)
			}
		})
	}
}

// TestPlaces_IncludedText checks that an error in a text of !include_raw is reported in the included file.
func TestPlaces_IncludedText(t *testing.T) {
	const document = "id: app\nflows:\n  - id: main\n    variables: [{id: name, type: text}, {id: answer, type: text}, {id: more, type: text}]\n    inputs: [name]\n    outputs: [answer, more]\n    steps:\n" +
		"      - {id: greet, type: PromptTemplate, template: !include_raw greet.txt, inputs: [name], outputs: [answer]}\n" +
		"      - {id: read, type: SQLSource, connection: \"sqlite:///a.db\", query: !include_raw read.sql, inputs: [name], outputs: [more]}\n"
	folder := t.TempDir()
	for name, text := range map[string]string{"app.qtype.yaml": document, "read.sql": "select :name as more\n  where :name = :nmae\n",
		"greet.txt": "{name}\r\n\r\n  {nmae} and\r\n日本 {name} {nope} and\r\n} \r\n"} {
		testkit.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	loaded, list := loader.Load(t.Context(), filepath.Join(folder, "app.qtype.yaml"), emptyEnvironment())
	list = append(list, validate.Check(loaded.Document)...)
	list.Sort()
	var got []string
	for _, d := range list {
		line := []rune(d.Span.File.Line(d.Span.Start.Line))
		got = append(got, fmt.Sprintf("%s %s:%d:%d %s", d.Code, filepath.Base(d.Span.File.Path), d.Span.Start.Line, d.Span.Start.Column, string(line[d.Span.Start.Column-1:d.Span.End.Column-1])))
		if from := d.Span.Includes(); len(from) != 1 || from[0].Start.Line < 8 {
			t.Errorf("%v is included from %v", d, from)
		}
	}
	want := []string{"QT905 greet.txt:3:3 {nmae}", "QT905 greet.txt:4:11 {nope}", "QT905 greet.txt:5:1 }", "QT461 read.sql:2:18 nmae"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
