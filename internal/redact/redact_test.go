package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/redact"
)

const marked = `Zx9/kQ+7"mW=2pL`

func newRedactor(texts ...string) *redact.Redactor {
	r := redact.New()
	r.Add(texts...)
	return r
}

// TestString checks the forms in which a secret is repeated.
func TestString(t *testing.T) {
	r := newRedactor(marked)
	basic := func(user string) string { return base64.StdEncoding.EncodeToString([]byte(user + ":" + marked)) }
	for name, form := range map[string]string{
		"itself": marked, "another case": strings.ToUpper(marked), "spaced": strings.Join(strings.Split(marked, ""), " "),
		"in a query": url.QueryEscape(marked), "in a path": url.PathEscape(marked), "in JSON": `Zx9/kQ+7\"mW=2pL`, "in JSON twice": `Zx9/kQ+7\\\"mW=2pL`,
		"in HTML": "Zx9/kQ+7&#34;mW=2pL", "hexadecimal": strings.ToUpper(hex.EncodeToString([]byte(marked))),
		"over two lines": marked[:6] + "\n  " + marked[6:], "cut off": marked[:10] + "…", "cut off at the end": marked[:9],
		"base64": base64.StdEncoding.EncodeToString([]byte(marked)), "base64 of a URL": base64.RawURLEncoding.EncodeToString([]byte(marked)),
		"basic a": basic("a"), "basic ab": basic("ab"), "basic abc": basic("abc"),
	} {
		got := r.String("before " + form)
		if !strings.Contains(got, redact.Mask) || strings.Contains(got, form) || len(form)-len(got) > 0 && strings.Contains(got, form[3:len(form)-3]) {
			t.Errorf("%s: %q is %q", name, form, got)
		}
		if !strings.HasPrefix(got, "before ") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestString_Ordinary checks texts that are not replaced.
func TestString_Ordinary(t *testing.T) {
	r := newRedactor("true", "abc", "12345", "default", "password", "***", "${KEY}", "http://localhost:8080/v1/models", "hunter", "123456", " ")
	for text, want := range map[string]string{
		"it is true that the default password is abc": "it is true that the default password is abc",
		"http://localhost:8080/v1/models is 12345":    "http://localhost:8080/v1/models is 12345",
		"a headhunter hunted; h u n t e r; Hunter":    "a headhunter hunted; h u n t e r; Hunter",
		"the word hunter, and 123456.":                "the word ***, and ***.",
		"1234567 and 123 456":                         "1234567 and 123 456",
	} {
		if got := r.String(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	var none *redact.Redactor
	if none.String("x") != "x" || !none.Empty() || !redact.New().Empty() {
		t.Error("a Redactor without secrets changes texts")
	}
}

// TestAdd checks the parts of values that are secrets.
func TestAdd(t *testing.T) {
	for value, want := range map[string]string{
		"Bearer tok-4711-abcdef": "tok-4711-abcdef",
		"Basic " + base64.StdEncoding.EncodeToString([]byte("me:pw-4711-abc")): "pw-4711-abc",
		"postgres://me:pw-4711-abc@db.example/orders":                          "pw-4711-abc",
		"https://example.com/x?api_key=pw-4711-abc&limit=20":                   "pw-4711-abc",
		"https://hooks.example.com/services/T0/aB3dE6gH9jK2mN5pQ":              "aB3dE6gH9jK2mN5pQ",
		`{"password": "pw-4711-abc", "host": "db.example"}`:                    "pw-4711-abc",
		"-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\n-----END KEY-----":         "MIIEvQIBADANBgkqhkiG",
	} {
		r := newRedactor(value)
		if got := r.String("a " + want + " b"); got != "a *** b" {
			t.Errorf("%s: %q", value, got)
		}
		if text := "https://hooks.example.com db.example orders limit=20 BEGIN KEY"; r.String(text) != text {
			t.Errorf("%s: %q", value, r.String(text))
		}
	}
}

// TestAddArguments checks arguments of programs.
func TestAddArguments(t *testing.T) {
	for _, args := range [][]string{
		{"--token", "pw-4711-abc"}, {"--api-key=pw-4711-abc"}, {"-e", "DB_PASSWORD=pw-4711-abc"},
		{"-H", "Authorization: Bearer pw-4711-abc"}, {"--url", "https://me:pw-4711-abc@example.com"},
	} {
		r := redact.New()
		r.AddArguments(append([]string{"--output", "report.json"}, args...))
		if got := r.String("report.json pw-4711-abc"); got != "report.json ***" {
			t.Errorf("%q: %q", args, got)
		}
	}
}

// TestLooksSecret checks texts without a name.
func TestLooksSecret(t *testing.T) {
	for _, text := range []string{"sk-proj-0123456789", "ghp_abcdefghij0123456789", "aB3dE6gH9jK2mN5pQ"} {
		if !redact.LooksSecret(text) {
			t.Errorf("%s does not look like a secret", text)
		}
	}
	for _, text := range []string{"claude-haiku-4-5-20251001", "Meta-Llama-3-70B-Instruct", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
		"d35c59abb061a4a6fb18e82ac0862c26744d6ab5", "a text with Words and 12 numbers", "v1beta1/publishers/google"} {
		if redact.LooksSecret(text) {
			t.Errorf("%s looks like a secret", text)
		}
	}
}

// TestWriter divides a text at each place, and writes each byte by itself.
func TestWriter(t *testing.T) {
	r := newRedactor(marked)
	text := "answer: " + marked + " is the key, Zx is not; " + marked[:5] + "\n"
	want := "answer: *** is the key, Zx is not; " + marked[:5] + "\n"
	write := func(parts ...string) string {
		var b bytes.Buffer
		w := r.NewWriter(&b)
		s := r.NewStream()
		streamed := ""
		for _, p := range parts {
			if n, err := w.Write([]byte(p)); err != nil || n != len(p) {
				t.Fatal(n, err)
			}
			streamed += s.Next(p)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if streamed += s.End(); streamed != b.String() {
			t.Errorf("the stream is %q, the writer %q", streamed, b.String())
		}
		return b.String()
	}
	for i := range text {
		if got := write(text[:i], text[i:]); got != want {
			t.Errorf("divided at %d: %q", i, got)
		}
	}
	if got := write(strings.Split(text, "")...); got != want {
		t.Errorf("byte by byte: %q", got)
	}
}

// TestWriter_AtOnce checks that lines and prompts are not held back.
func TestWriter_AtOnce(t *testing.T) {
	var b bytes.Buffer
	w := newRedactor("sk-very-secret").NewWriter(&b)
	for _, text := range []string{"it is\n", "sk\r", "continue with s ", "a prompt> "} {
		b.Reset()
		if fmt.Fprint(w, text); b.String() != text {
			t.Errorf("%q: %q is written", text, b.String())
		}
	}
}

func TestError(t *testing.T) {
	r := newRedactor(marked)
	err := r.Error(fmt.Errorf("GET /%s: %w", marked, fs.ErrNotExist))
	if err.Error() != "GET /***: file does not exist" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if plain := errors.New("plain"); r.Error(plain) != plain || r.Error(nil) != nil { //nolint:errorlint // the error itself, not one that wraps it
		t.Error("an error without secrets is changed")
	}
}

func TestValue(t *testing.T) {
	r := newRedactor(marked)
	got := fmt.Sprint(r.Value(map[string]any{"a": []any{marked, 1, nil, []byte(marked)}, marked: true, "b": []string{marked}}))
	if want := fmt.Sprint(map[string]any{"a": []any{"***", 1, nil, []byte("***")}, "***": true, "b": []string{"***"}}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// BenchmarkString measures a text of 4 KB without secrets, with 8 secrets known.
func BenchmarkString(b *testing.B) {
	r := redact.New()
	for i := range 8 {
		r.Add(fmt.Sprintf("sk-proj-%d-aB3dE6gH9jK2mN5pQ%d", i, i*7919))
	}
	text := strings.Repeat("The parcel HL-48213 has left our shop and should reach you soon. ", 64)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r.String(text)
	}
}

// FuzzReplace compares a text that is written in two parts with the whole.
func FuzzReplace(f *testing.F) {
	f.Add("sk-very-secret", "the key is sk-very-secret!", 12)
	f.Fuzz(func(t *testing.T, secret, text string, at int) {
		r := newRedactor(secret)
		at = min(max(at, 0), len(text))
		s := r.NewStream()
		got := s.Next(text[:at]) + s.Next(text[at:]) + s.End()
		if isDistinct := len(strings.TrimSpace(secret)) > 12 && !strings.ContainsAny(secret, " \t\r\n:{$*"); isDistinct && strings.Contains(got, secret) {
			t.Errorf("%q is in %q", secret, got)
		}
	})
}

// TestPanicText shows errors of the Go runtime only.
func TestPanicText(t *testing.T) {
	text := func(f func()) (shown string) {
		defer func() { shown = redact.PanicText(recover()) }()
		f()
		return ""
	}
	if got := text(func() { panic("marker-7716-secret") }); got != "internal error" {
		t.Errorf("a panic with a text is shown as %q", got)
	}
	var list []int
	if got := text(func() { _ = list[3:] }); got != "internal error: runtime error: slice bounds out of range [3:0]" {
		t.Errorf("an error of the runtime is shown as %q", got)
	}
}

func TestNamesSecret(t *testing.T) {
	for key, want := range map[string]bool{"token": true, "Access-Token": true, "X-Shop-Key": true, "password": true, "max_token": false,
		"max_tokens": false, "Max-Token": false, "min_token": false, "Idempotency-Key": false, "name": false} {
		if got := redact.NamesSecret(key); got != want {
			t.Errorf("%s: %v", key, got)
		}
	}
}
