package textfmt_test

import (
	"os/exec"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/textfmt"
)

func TestShellQuote(t *testing.T) {
	for word, want := range map[string]string{
		"app/app.qtype.yaml": "app/app.qtype.yaml", "": "''", "my  app": "'my  app'", "Ada's": `'Ada'\''s'`, "~": "'~'", "$HOME": "'$HOME'", "a\x1bb'": `$'a\x1bb\''`,
	} {
		if got := textfmt.ShellQuote(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}

// TestShellQuote_Bash checks that a shell reads each word back.
func TestShellQuote_Bash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("SKIPPED: bash is not installed")
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringOfN(rapid.SampledFrom([]rune("a '\"\\$`!*?~#&;|<>(){}[]\t\n\x1bé\u0085")), 0, 12, -1).Draw(t, "word")
		out, err := exec.Command(bash, "-c", "printf %s "+textfmt.ShellQuote(word)).Output()
		if err != nil || string(out) != word {
			t.Fatalf("%q became %q (%v)", word, out, err)
		}
	})
}
