package diag_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// withSecrets makes a file whose words between « and » are secrets.
func withSecrets(t *testing.T, text string) *source.File {
	t.Helper()
	f := &source.File{Path: "a.yaml"}
	var spans [][2]int
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "«")
		b.WriteString(before)
		if !found {
			break
		}
		secret, after, _ := strings.Cut(rest, "»")
		spans = append(spans, [2]int{b.Len(), b.Len() + len(secret)})
		b.WriteString(secret)
		text = after
	}
	f.Text = []byte(b.String())
	at := func(offset int) source.Pos {
		before := b.String()[:offset]
		return source.Pos{Line: 1 + strings.Count(before, "\n"), Column: 1 + len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))}
	}
	for _, s := range spans {
		f.MarkSecret(source.Span{File: f, Start: at(s[0]), End: at(s[1])})
	}
	return f
}

func TestText_RedactsSecrets(t *testing.T) {
	for name, c := range map[string]struct{ text, word, want string }{
		"behind the secret":  {"- {key: «sk-1234567», hosst: x}", "hosst", "1 | - {key: ***, hosst: x}\n  |              ^^^^^\n"},
		"before the secret":  {"- {hosst: x, key: «ü€»}", "hosst", "1 | - {hosst: x, key: ***}\n  |    ^^^^^\n"},
		"the secret itself":  {"key: «sk-1234567»  # ours", "sk-1234567", "1 | key: ***  # ours\n  |      ^^^\n"},
		"a part of it":       {"key: «sk-1234567» end", "1234", "1 | key: *** end\n  |      ^^^\n"},
		"between two":        {"{a: «1», bb: 2, c: «333333»}", "bb", "1 | {a: ***, bb: 2, c: ***}\n  |          ^^\n"},
		"two that meet":      {"{a: «12»«34», b: 2}", "b", "1 | {a: ***, b: 2}\n  |          ^\n"},
		"wide and long":      {"{«" + strings.Repeat("語", 500) + "» b: 2}", "b", "1 | {*** b: 2}\n  |      ^\n"},
		"from the next line": {"a: «|\n  sk-1\n  sk-2» end\nb: 1", "sk-2", "3 |   *** end\n  |   ^^^\n"},
		"its middle line":    {"a: «|\n  sk-1\n  sk-2»\nb: 1", "sk-1", "2 |   ***\n  |   ^^^\n"},
	} {
		f := withSecrets(t, c.text)
		d := diag.Rule{Code: "QT103", Severity: diag.Error}.At(span(t, f, c.word, 0), "it is wrong")
		if got := text(t, diag.TextOptions{}, d); !strings.Contains(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestText_RedactsSecretsInRelatedExcerpts(t *testing.T) {
	f := withSecrets(t, "- {id: a, key: «sk-1234567»}\n- {id: a, key: «sk-7654321»}\n")
	other := withSecrets(t, "{key: «sk-999999», id: a}")
	d := diag.Rule{Code: "QT201", Severity: diag.Error}.At(span(t, f, "a, key", 1), "twice").
		WithRelated(span(t, f, "a, key", 0), "first").WithRelated(span(t, other, "id", 0), "there")
	got := text(t, diag.TextOptions{}, d)
	if strings.Contains(got, "sk-") || strings.Count(got, "***") != 3 {
		t.Errorf("got\n%s", got)
	}
}
