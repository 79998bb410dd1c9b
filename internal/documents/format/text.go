package format

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// convertText returns text in UTF-8, with line feeds as line breaks.
func convertText(_ context.Context, j *job) (*Result, error) {
	text, err := decodeText(j.file)
	if err != nil {
		return nil, err
	}
	return &Result{Text: text}, nil
}

// decodeText converts the content of a file to UTF-8 without a byte order mark and with
// line feeds as line breaks.
func decodeText(file File) (string, error) {
	text, err := toUTF8(file.Data, declaredCharset(file))
	if err != nil {
		return "", err
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"), nil
}

// convertCSV returns delimited text as a table. The delimiter is the one of comma,
// semicolon, tab and bar that the first line has most often.
func convertCSV(ctx context.Context, j *job) (*Result, error) {
	text, err := decodeText(j.file)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(strings.NewReader(text))
	r.Comma = delimiter(text)
	r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = -1, true, false
	var rows [][]string
	w := j.writer(ctx)
	for cells := 0; ; {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errorf(Damaged, "is damaged: %v", err)
		}
		rows = append(rows, row)
		if cells += len(row); cells > j.limits.Output/3 { // each cell takes three bytes at least
			return nil, outputTooLarge(j.limits)
		}
		if w.stopped() {
			return nil, w.err
		}
	}
	w.table(rows)
	return w.result()
}

// delimiter returns the character between the cells of delimited text.
func delimiter(text string) rune {
	line, _, _ := strings.Cut(text, "\n")
	best, most := ',', 0
	for _, c := range ",;\t|" {
		if n := strings.Count(line, string(c)); n > most {
			best, most = c, n
		}
	}
	return best
}

// convertXLSX returns the visible sheets of a workbook, each as a heading and a table.
func convertXLSX(ctx context.Context, j *job) (*Result, error) {
	a, err := openArchive(j)
	if err != nil {
		return nil, err
	}
	w := j.writer(ctx)
	var rows [][]string
	sheet := ""
	flush := func() {
		if len(rows) > 0 {
			in := new(inline)
			in.add(sheet, 0, "")
			w.heading(2, in)
			w.table(rows)
		}
		rows = nil
	}
	size := 0
	err = records.ReadWorkbook(ctx, bytes.NewReader(j.file.Data), j.unpacked, func(name string, cells []string) error {
		if name != sheet {
			flush()
			sheet = name
		}
		rows = append(rows, slices.Clone(cells))
		for _, cell := range cells {
			size += len(cell) + 3
		}
		if size > j.limits.Output {
			return outputTooLarge(j.limits)
		}
		if w.stopped() {
			return w.err
		}
		return nil
	})
	if errors.Is(err, records.ErrWorkbookSize) {
		return nil, unpackedTooLarge(j.limits)
	}
	if err != nil {
		return nil, err
	}
	flush()
	result, err := w.result()
	if err != nil {
		return nil, err
	}
	result.Title = a.officeTitle()
	return result, nil
}

// dropNulls removes null characters, which PostgreSQL does not store.
func (r *Result) dropNulls() {
	const null = "\x00"
	r.Title = strings.ReplaceAll(r.Title, null, "")
	if !strings.Contains(r.Text, null) {
		return
	}
	rest, at, dropped := r.Text, 0, 0
	for i, p := range r.Pages {
		end := textfmt.ByteOffset(rest, p.Offset-at)
		dropped += strings.Count(rest[:end], null)
		rest, at = rest[end:], p.Offset
		r.Pages[i].Offset -= dropped
	}
	r.Text = strings.ReplaceAll(r.Text, null, "")
}

// DecodeText returns the content of a text file in UTF-8, unchanged but for a byte order
// mark. Bytes that the charset does not have become U+FFFD. The error is a *Error.
func DecodeText(file File) (string, error) {
	text, err := toUTF8(file.Data, declaredCharset(file))
	var known *Error
	if errors.As(err, &known) {
		return "", &Error{Name: remotefs.Redacted(file.Name), Kind: known.Kind, Reason: known.Reason, Err: known.Err}
	}
	return text, err
}

// declaredCharset returns the charset that the caller or the media type names.
func declaredCharset(file File) string {
	if file.Charset != "" {
		return file.Charset
	}
	_, params, err := mime.ParseMediaType(file.MediaType)
	if err != nil {
		return ""
	}
	return params["charset"]
}

// toUTF8 converts text to UTF-8. A byte order mark decides, then the declared charset,
// then whether the text is UTF-8, then its statistics. Bytes that the charset does not
// have become U+FFFD.
func toUTF8(data []byte, declared string) (string, error) {
	enc, bom := byMark(data)
	data = data[bom:]
	if enc == nil && bom == 0 && declared != "" {
		var err error
		if enc, err = charsetNamed(declared); err != nil {
			return "", err
		}
	}
	switch {
	case enc != nil:
	case bytes.Contains(data, []byte("\x1b$")) && decodes(japanese.ISO2022JP, data): // all its bytes are ASCII
		enc = japanese.ISO2022JP
	case utf8.Valid(data) && bytes.IndexByte(data, 0) < 0:
		return string(data), nil
	case bom > 0:
		return strings.ToValidUTF8(string(data), "\uFFFD"), nil
	default:
		if enc = guessCharset(data); enc == nil {
			return "", errorf(Unsupported, "contains binary data of an unknown format")
		}
	}
	text, err := enc.NewDecoder().Bytes(data)
	if err != nil {
		return "", errorf(Damaged, "is not text of its charset: %v", err)
	}
	return string(text), nil
}

// byMark returns the charset of a byte order mark and its length. The charset of the
// mark of UTF-8 is nil.
func byMark(data []byte) (encoding.Encoding, int) {
	for _, mark := range []struct {
		bytes string
		enc   encoding.Encoding
	}{
		{"\xff\xfe\x00\x00", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)},
		{"\x00\x00\xfe\xff", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)},
		{"\xef\xbb\xbf", nil},
		{"\xff\xfe", utf16LE()},
		{"\xfe\xff", utf16BE()},
	} {
		if bytes.HasPrefix(data, []byte(mark.bytes)) {
			return mark.enc, len(mark.bytes)
		}
	}
	return nil, 0
}

func utf16LE() encoding.Encoding { enc, _ := charset.Lookup("utf-16le"); return enc }
func utf16BE() encoding.Encoding { enc, _ := charset.Lookup("utf-16be"); return enc }

// charsetNamed returns the charset of a name of the WHATWG, of IANA, or of Python
// ("latin_1", "utf_8_sig").
func charsetNamed(name string) (encoding.Encoding, error) {
	plain := strings.ToLower(strings.TrimSpace(name))
	for _, try := range []string{plain, strings.ReplaceAll(plain, "_", "-"), strings.TrimSuffix(strings.ReplaceAll(plain, "_", "-"), "-sig")} {
		if alias, ok := map[string]string{"latin-1": "latin1", "utf-32le": "", "cp936": "gbk", "cp932": "shift_jis", "cp949": "euc-kr", "cp950": "big5", "sjis": "shift_jis"}[try]; ok {
			try = alias
		}
		if digits, ok := strings.CutPrefix(try, "cp125"); ok {
			try = "windows-125" + digits
		}
		if enc, err := htmlindex.Get(try); err == nil && enc != encoding.Replacement {
			return enc, nil
		}
	}
	return nil, errorf(Unsupported, "has the unknown charset %q", name)
}

// guessCharset returns the charset of text that has no byte order mark and is not
// UTF-8, nil if the data is not text.
func guessCharset(data []byte) encoding.Encoding {
	const sample = 64 << 10
	data = data[:min(len(data), sample)]
	if bytes.IndexByte(data, 0) >= 0 {
		return guessUTF16(data)
	}
	if controls(data)*20 > len(data) {
		return nil
	}
	guesses, err := chardet.NewTextDetector().DetectAll(data)
	if err != nil {
		return charmap.Windows1252
	}
	for _, guess := range guesses {
		enc, err := charsetNamed(guess.Charset)
		if err == nil && decodes(enc, data) {
			return enc
		}
	}
	return charmap.Windows1252
}

// decodes reports whether all bytes have a meaning in a charset, but for a character
// that the end of the sample divides.
func decodes(enc encoding.Encoding, data []byte) bool {
	text, err := enc.NewDecoder().Bytes(data)
	if err != nil {
		return false
	}
	at := bytes.Index(text, []byte("\uFFFD"))
	return at < 0 || at >= len(text)-2*utf8.UTFMax
}

// guessUTF16 returns the charset of text with null bytes: UTF-16 if nearly all of them
// are in even or in odd places, as in text of mostly Latin letters; else nil. What is
// text without them is UTF-16 only if they are in nearly all of those places.
func guessUTF16(data []byte) encoding.Encoding {
	var zeros [2]int
	for i, b := range data {
		if b == 0 {
			zeros[i%2]++
		}
	}
	enc, high, low := utf16LE(), zeros[1], zeros[0]
	if zeros[0] > zeros[1] {
		enc, high, low = utf16BE(), zeros[0], zeros[1]
	}
	other := bytes.ReplaceAll(data, []byte{0}, nil)
	if high*4 < (len(data)+1)/2*3 && utf8.Valid(other) && controls(other)*20 <= len(other) {
		return nil
	}
	text, err := enc.NewDecoder().Bytes(data[:len(data)&^1])
	if high*5 < len(data)/2 || low*20 > high || err != nil || controls(text)*20 > len(text) {
		return nil
	}
	return enc
}

// controls counts the control characters that text does not have.
func controls(data []byte) int {
	n := 0
	for _, b := range data {
		if b < ' ' && !bytes.ContainsRune([]byte("\t\n\r\f\v\x1b"), rune(b)) || b == 0x7f {
			n++
		}
	}
	return n
}
