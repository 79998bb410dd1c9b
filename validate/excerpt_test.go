package validate_test

import (
	"strings"
	"testing"
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
