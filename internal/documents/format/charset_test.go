package format

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

const (
	german   = "Die Größe der Schiffe ändert sich täglich. Über den Kanal führt eine Brücke, die für große Schiffe geöffnet wird. Das Büro schließt früh."
	russian  = "Лоцманы проводят корабли через узкий пролив ночью. Каждый лоцман ведёт записи о глубине, ветре и течении. Контора собирает эти записи утром."
	japan    = "水先人は夜に狭い水路を通って船を案内します。それぞれの水先人は水深、風、潮流を記録しています。事務所は毎朝これらの記録を集めます。"
	china    = "引航员夜间引导船舶通过狭窄的航道。每位引航员都记录水深、风力和水流。办公室每天早上收集这些记录，并与潮汐表进行比较。"
	taiwan   = "引水人夜間引導船舶通過狹窄的航道。每位引水人都記錄水深、風力和水流。辦公室每天早上收集這些記錄，並與潮汐表進行比較。"
	koreaned = "도선사는 밤에 좁은 수로를 통해 배를 안내합니다. 모든 도선사는 수심과 바람과 조류를 기록합니다. 사무실은 매일 아침 기록을 모읍니다."
)

func TestConvert_Charsets(t *testing.T) {
	for name, test := range map[string]struct {
		enc  encoding.Encoding
		text string
	}{
		"UTF-8":               {encoding.Nop, german},
		"UTF-16 with mark":    {unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), russian},
		"UTF-16BE with mark":  {unicode.UTF16(unicode.BigEndian, unicode.UseBOM), japan},
		"UTF-16 without mark": {unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), german},
		"UTF-32 with mark":    {utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), german},
		"Latin-1":             {charmap.ISO8859_1, german},
		"windows-1251":        {charmap.Windows1251, russian},
		"KOI8-R":              {charmap.KOI8R, russian},
		"Shift-JIS":           {japanese.ShiftJIS, japan},
		"EUC-JP":              {japanese.EUCJP, japan},
		"ISO-2022-JP":         {japanese.ISO2022JP, japan},
		"GB18030":             {simplifiedchinese.GB18030, china},
		"Big5":                {traditionalchinese.Big5, taiwan},
		"EUC-KR":              {korean.EUCKR, koreaned},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := test.enc.NewEncoder().String(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := convert(t, "a.txt", data).Text; got != test.text {
				t.Errorf("got %.60q", got)
			}
		})
	}
}

func TestConvert_DeclaredCharset(t *testing.T) {
	short, _ := charmap.Windows1252.NewEncoder().String("10 €")
	for _, file := range []File{
		{Name: "a.txt", Charset: "cp1252", Data: []byte(short)},
		{Name: "a.txt", MediaType: "text/plain; charset=windows-1252", Data: []byte(short)},
	} {
		r, err := Convert(t.Context(), file, Limits{})
		if err != nil || r.Text != "10 €" {
			t.Errorf("%+v: %v, %v", file, r, err)
		}
	}
	page, _ := charmap.Windows1251.NewEncoder().String("<html><head><meta charset=windows-1251></head><body><p>Порт</p></body></html>")
	if got := convert(t, "a.html", page).Text; got != "Порт" {
		t.Errorf("got %q", got)
	}
	if err := convertError(t, File{Name: "a.txt", Charset: "klingon", Data: []byte("x")}, Limits{}); !strings.Contains(err.Error(), `unknown charset "klingon"`) {
		t.Error(err)
	}
}
