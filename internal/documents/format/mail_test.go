package format

import (
	"strings"
	"testing"
)

const message = "From: =?utf-8?q?J=C3=BCrgen?= <j@example.com>\r\nTo: Ada <ada@example.com>\r\nSubject: =?iso-8859-1?Q?Gr=F6=DFe?=\r\nDate: Mon, 2 Mar 2026 10:00:00 +0000\r\n"

const head = "# Größe\n\nFrom: Jürgen <j@example.com>\nTo: Ada <ada@example.com>\nDate: Mon, 2 Mar 2026 10:00:00 +0000\n\n"

func TestConvert_Mail(t *testing.T) {
	for _, test := range []struct{ name, mail, want string }{
		{"plain", message + "Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" +
			"Gr=FC=DFe,\r\n> a quotation\r\n", head + "Grüße,\n> a quotation"},
		{"alternatives", message + "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nplain\r\n" +
			"--b\r\nContent-Type: text/html\r\n\r\n<p>page</p>\r\n--b--\r\n", head + "plain"},
		{"HTML only", message + "Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nPGgyPlJlcG9ydDwvaDI+PHA+PGI+d8O2cnQ8L2I+PC9wPg==\r\n", head + "## Report\n\n**wört**"},
		{"attachments", message + "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\ntext\r\n" +
			"--b\r\nContent-Type: application/pdf; name=\"=?utf-8?q?=C3=84.pdf?=\"\r\nContent-Disposition: attachment\r\nContent-Transfer-Encoding: base64\r\n\r\nJVBERi0=\r\n" +
			"--b\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; filename=a.csv\r\n\r\n1,2\r\n--b--\r\n",
			head + "text\n\nAttachments:\n\n- Ä.pdf (application/pdf, 5 bytes)\n- a.csv (text/csv, 3 bytes)"},
		{"message in a message", message + "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nFrom: x@example.com\r\nSubject: inner\r\n\r\nold text\r\n--b--\r\n",
			head + "## inner\n\nFrom: x@example.com\n\nold text"},
		{"cut off", message + "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nbegin", head + "begin"},
		{"a null character", message + "Content-Type: text/plain\r\n\r\nhi\x00 there", head + "hi there"},
		{"UTF-16 without charset", message + "Content-Type: text/plain\r\n\r\nh\x00i\x00", head + "hi"},
		{"null characters in a charset", message + "Content-Type: text/plain; charset=utf-8\r\n\r\nm\x00\x00öre", head + "möre"},
		{"unknown charset", message + "Content-Type: text/plain; charset=x-none\r\n\r\ntext", head + "text"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if r := convert(t, "a.eml", test.mail); r.Text != test.want || r.Title != "Größe" {
				t.Errorf("title %q, got:\n%s\nwant:\n%s", r.Title, r.Text, test.want)
			}
		})
	}
}

func TestConvert_MailBombs(t *testing.T) {
	nested := strings.Repeat("Content-Type: message/rfc822\r\n\r\n", 1000) + "text"
	parts := message + "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\n\r\nx\r\n", 100_000)
	for name, mail := range map[string]string{"nested": nested, "parts": parts} {
		if r, err := Convert(t.Context(), File{Name: "a.eml", Data: []byte(mail)}, Limits{}); err == nil && len(r.Text) > 10_000 {
			t.Errorf("%s: %d bytes", name, len(r.Text))
		}
	}
}

func TestConvert_CSV(t *testing.T) {
	for name, content := range map[string]string{
		"a.csv": "name,note\nRope,\"long, strong\"\n\nLamp,\"a\nb|c\"\n",
		"b.csv": "name;note\nRope;long, strong\nLamp;\"a b|c\"\n",
		"c.tsv": "name\tnote\nRope\tlong, strong\nLamp\ta b|c\n",
	} {
		want := "| name | note |\n| --- | --- |\n| Rope | long, strong |\n| Lamp | a b\\|c |"
		if got := convert(t, name, content).Text; got != want {
			t.Errorf("%s: got:\n%s", name, got)
		}
	}
	if got := convert(t, "a.csv", "a,b\n1\n1,2,3\n").Text; got != "| a | b |  |\n| --- | --- | --- |\n| 1 |  |  |\n| 1 | 2 | 3 |" {
		t.Errorf("got:\n%s", got)
	}
}

func TestConvert_JSONUnchanged(t *testing.T) {
	const text = "{\"a\": [1, 2.50]}\n{\"b\": \"ü\"}\n"
	if got := convert(t, "a.jsonl", text).Text; got != text {
		t.Errorf("got %q", got)
	}
}

func FuzzMail(f *testing.F) {
	f.Add([]byte(message + "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nplain\r\n--b--\r\n"))
	f.Add([]byte("From a\nSubject: b\n\nc\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"a.eml", "a.mbox", "a.csv", "a.txt"} {
			_, _ = Convert(t.Context(), File{Name: name, Data: data}, Limits{Output: 1 << 20}) // must not panic
		}
	})
}
