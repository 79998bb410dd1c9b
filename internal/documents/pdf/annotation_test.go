package pdf

import (
	"strings"
	"testing"
)

// form makes a file with a page and its annotations.
func form(content string, annotations ...string) []byte {
	return onePage(content, append([]string{streamObject("/Type/XObject/Subtype/Form/BBox[0 0 100 20]/Resources<</Font<</F 5 0 R>>>>", "BT /F 10 Tf 2 5 Td (shown value) Tj ET")},
		annotations...)...)
}

// TestRead_Forms reads the values of fields and free texts, from their appearance or, without one, from the field.
func TestRead_Forms(t *testing.T) {
	const label = "BT /F 10 Tf 10 705 Td (Name: ___________) Tj ET"
	place := "/Type/Annot/Subtype/Widget/Rect[60 700 160 720]"
	for name, c := range map[string]struct{ annotation, want string }{
		"appearance":      {"<<" + place + "/FT/Tx/V(raw)/AP<</N 6 0 R>>>>", "Name: shown value"},
		"value":           {"<<" + place + "/FT/Tx/V(Ada)>>", "Name: Ada"},
		"value in UTF-16": {"<<" + place + "/FT/Tx/V<FEFF0041006400E1>>>", "Name: Adá"},
		"value of parent": {"<<" + place + "/Parent<</FT/Tx/V(Ada)>>>>", "Name: Ada"},
		"choice":          {"<<" + place + "/FT/Ch/V(de)/Opt[[(en)(English)][(de)(German)]]>>", "Name: German"},
		"choices":         {"<<" + place + "/FT/Ch/V[(en)(fr)]/Opt[[(en)(English)](fr)]>>", "English Name: fr"},
		"checked":         {"<<" + place + "/FT/Btn/AS/Yes>>", "Name: ☑"},
		"not checked":     {"<<" + place + "/FT/Btn/AS/Off>>", "Name: ☐"},
		"push button":     {"<<" + place + "/FT/Btn/Ff 65536/AP<</N 6 0 R>>>>", "Name: shown value"},
		"password":        {"<<" + place + "/FT/Tx/Ff 8192/V(secret)>>", "Name: ___________"},
		"hidden":          {"<<" + place + "/FT/Tx/F 2/V(Ada)>>", "Name: ___________"},
		"empty":           {"<<" + place + "/FT/Tx>>", "Name: ___________"},
		"free text":       {"<</Subtype/FreeText/Rect[60 700 160 720]/Contents(a note)>>", "Name: a note"},
		"another kind":    {"<</Subtype/Text/Rect[60 700 160 720]/Contents(a comment)>>", "Name: ___________"},
		"endless parents": {"<<" + place + "/FT/Tx/Parent 7 0 R>>", "Name: ___________"},
		"no place":        {"<</Subtype/FreeText/Contents(a note)>>", "Name: ___________|a note"},
	} {
		data := strings.Replace(string(form(label, c.annotation)), "/Type/Page/Parent", "/Annots[7 0 R]/Type/Page/Parent", 1)
		doc := read(t, []byte(data))
		if got := textOf(doc.Pages[0]); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestLineText puts words of scripts that run to the left in the order of reading, with their numbers and brackets.
func TestLineText(t *testing.T) {
	for visual, want := range map[string]string{
		"one two": "one two", "رابتخلا": "الختبار", "١٤٣٤ ليربإ ١٤": "١٤ إبريل ١٤٣٤", "١٤٣٤-ليربإ-١٤": "١٤-إبريل-١٤٣٤",
		"«يتاذ رابتخإ»": "«إختبار ذاتي»", "(رياني)": "(يناير)", "a ةيبرع b": "a عربية b", "12 a": "12 a",
	} {
		var words []word
		for text := range strings.FieldsSeq(visual) {
			words = append(words, word{text: text})
		}
		if got := lineText(words); got != want {
			t.Errorf("%s: %s, want %s", visual, got, want)
		}
	}
}
