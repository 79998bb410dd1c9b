package format

import (
	"strings"
	"testing"
)

func TestConvert_RTF(t *testing.T) {
	for _, test := range []struct{ name, body, want string }{
		{"paragraphs", `one\par two\
three\par\par four`, "one\n\ntwo\n\nthree\n\nfour"},
		{"a code page", `\ansicpg1251 \'cf\'f0\'e8\'e2\'e5\'f2`, "Привет"},
		{"the charset of a font", `{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial;}}a\'e9 {\f1\'cf}\'e9`, "aé Пé"},
		{"two bytes of a character", `\ansicpg932 \'93\'fa\'96\'7b`, "日本"},
		{"Unicode with what repeats it", `caf\u233\'e9 \u8212- \uc0\u233 x\uc2\u20013\'d6\'d0y`, "café — é" + "x中y"},
		{"halves of a character", `\u-10179?\u-8704?`, "😀"},
		{"an incomplete half", `a\u-10179?b`, "a\ufffdb"},
		{"emphasis", `a {\b bold} {\i it}\b  more\b0  end\plain x`, "a **bold** *it* **more** endx"},
		{"signs", `\{a\}\\ b\~c\_d\-e \ldblquote q\rdblquote\emdash\bullet`, "{a}\\ b c-de “q”—•"},
		{"hidden and deleted", `a{\v hidden}{\deleted gone}b`, "ab"},
		{"unknown groups", `a{\*\unknown b}{\pict 00ff}{\header head}{\info{\title T}{\author A}}c{\object{\result d}}`, "ac"},
		{"a link", `see {\field{\*\fldinst HYPERLINK "https://example.com/a"}{\fldrslt the {\b moon}}} now`, "see [the **moon**](https://example.com/a) now"},
		{"a link that is a script", `{\field{\*\fldinst{HYPERLINK "javascript:x()"}}{\fldrslt text}}`, "text"},
		{"headings", `{\stylesheet{\s0 Normal;}{\s3\b heading 2;}}\pard\s3 Tides\par\pard\outlinelevel0 Sea\par\pard text`, "## Tides\n\n# Sea\n\ntext"},
		{"lists", `{\listtext\tab\'95\tab}one\par{\pntext 2.\tab}two\par\pard after`, "- one\n2. two\n\nafter"},
		{"a table", `before\par\trowd\pard\intbl Day\cell Height\cell\row\trowd\pard\intbl Mon\par day\cell 2|1\cell\row\pard after\par`,
			"before\n\n| Day | Height |\n| --- | --- |\n| Mon day | 2\\|1 |\n\nafter"},
		{"a table without the end of a row", `\trowd\pard\intbl Day\cell Height\cell\row Mon\cell 2\cell`, "| Day | Height |\n| --- | --- |\n| Mon | 2 |"},
		{"a table without the end of a cell", `{\trowd\intbl Day\cell Height}`, "| Day | Height |\n| --- | --- |"},
		{"a paragraph after a row without an end", `\trowd\intbl Day\cell\pard after\par`, "| Day |\n| --- |\n\nafter"},
		{"a marker before the properties of its paragraph", `{\listtext\pard\plain 1.\tab}\pard\ls1 one\par{\listtext 2.}\pard two\par\pard after`, "1. one\n2. two\n\nafter"},
		{"a marker without text", `{\listtext 1.}\par\pard after\par`, "after"},
		{"null characters", `a\'00b\u0?c`, "abc"},
		{"binary data", "a{\\pict\\bin5 }}}}}}b", "ab"},
		{"a group without a control word", `{a}{{b}}`, "ab"},
		{"the text twice", `{\upr{plain}{\*\ud{\u233?}}}`, "é"},
	} {
		if got := convert(t, "a.rtf", `{\rtf1\ansi `+test.body+"}").Text; got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	if r := convert(t, "noname", `{\rtf1\ansi{\info{\title Caf\'e9 book}}x}`); r.Title != "Café book" || r.MediaType != "application/rtf" {
		t.Errorf("got %+v", r)
	}
	if err := convertError(t, File{Name: "a.rtf", Data: []byte(`{\rtf1 ` + strings.Repeat("x", 100) + "}")}, Limits{Output: 50}); err.Kind != TooLarge {
		t.Errorf("got %v", err)
	}
}

// odf makes an OpenDocument file.
func odf(t *testing.T, kind, body string) string {
	t.Helper()
	return string(pack(t, map[string]string{
		"mimetype": "application/vnd.oasis.opendocument." + kind,
		"content.xml": `<o:document-content xmlns:o="o" xmlns:t="t" xmlns:x="x"><o:automatic-styles>` +
			`<s:style xmlns:s="s" s:name="B"><s:text-properties s:font-weight="bold"/></s:style><s:style xmlns:s="s" s:name="off"><s:table-properties s:display="false"/></s:style>` +
			`<t:list-style t:name="N"><t:list-level-style-number t:level="1" t:num-format="1"/></t:list-style></o:automatic-styles><o:body>` + body + "</o:body></o:document-content>",
	}))
}

func TestConvert_OpenDocument(t *testing.T) {
	for _, test := range []struct{ name, kind, body, want string }{
		{"text", "text", `<o:text><t:h t:outline-level="2">Tides</t:h><t:p>High <t:span t:style-name="B">water</t:span><t:s t:c="3"/>is<t:line-break/>at <t:a x:href="https://example.com">noon</t:a>.</t:p></o:text>`,
			"## Tides\n\nHigh **water** is\nat [noon](https://example.com)."},
		{"a script", "text", `<o:text><t:p><t:a x:href="javascript:x()">a</t:a></t:p></o:text>`, "a"},
		{"deleted text and comments", "text", `<o:text><t:tracked-changes><t:p>old</t:p></t:tracked-changes><t:p>new<o:annotation><t:p>why</t:p></o:annotation></t:p></o:text>`, "new"},
		{"a footnote", "text", `<o:text><t:p>a<t:note><t:note-citation>1</t:note-citation><t:note-body><t:p>b</t:p></t:note-body></t:note></t:p><t:p>c</t:p></o:text>`, "a[1]\n\n[1] b\n\nc"},
		{"lists", "text", `<o:text><t:list t:style-name="N"><t:list-item><t:p>one</t:p><t:list><t:list-item><t:p>inner</t:p></t:list-item></t:list></t:list-item><t:list-item><t:p>two</t:p></t:list-item></t:list><t:p>end</t:p></o:text>`,
			"1. one\n   - inner\n2. two\n\nend"},
		{"a template", "text-template", `<o:text><t:p>x</t:p></o:text>`, "x"},
		{"sheets", "spreadsheet", `<o:spreadsheet><x:table x:name="A"><x:table-row><x:table-cell x:number-columns-repeated="2"><t:p>1</t:p></x:table-cell><x:table-cell x:number-columns-repeated="16000"/></x:table-row>` +
			`<x:table-row x:number-rows-repeated="1048570"><x:table-cell x:number-columns-repeated="16384"/></x:table-row></x:table><x:table x:name="B" x:style-name="off"><x:table-row><x:table-cell><t:p>2</t:p></x:table-cell></x:table-row></x:table></o:spreadsheet>`,
			"## A\n\n| 1 | 1 |\n| --- | --- |"},
	} {
		if got := convert(t, "a.odx", odf(t, test.kind, test.body)).Text; got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	bomb := `<o:spreadsheet><x:table><x:table-row x:number-rows-repeated="1048570"><x:table-cell x:number-columns-repeated="1024"><t:p>1</t:p></x:table-cell></x:table-row></x:table></o:spreadsheet>`
	if err := convertError(t, File{Name: "a.ods", Data: []byte(odf(t, "spreadsheet", bomb))}, Limits{}); err.Kind != TooLarge {
		t.Errorf("got %v", err)
	}
	if err := convertError(t, File{Name: "a.odg", Data: []byte(odf(t, "graphics", ""))}, Limits{}); err.Kind != Unsupported || !strings.Contains(err.Error(), "neither a text, a spreadsheet nor a presentation") {
		t.Errorf("got %v", err)
	}
	locked := string(pack(t, map[string]string{"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": "x",
		"META-INF/manifest.xml": `<m:manifest xmlns:m="m"><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>`}))
	if err := convertError(t, File{Name: "a.odt", Data: []byte(locked)}, Limits{}); err.Kind != Encrypted {
		t.Errorf("got %v", err)
	}
}
