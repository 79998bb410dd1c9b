package command

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestValidate_Watch changes a document that is watched, then interrupts the command.
func TestValidate_Watch(t *testing.T) {
	for _, c := range []struct {
		end  string // what the document is at last
		code int
	}{
		{"id: shop\n", cli.ExitDone},
		{"id: 7\n", cli.ExitFailed},
	} {
		inFolder(t, map[string]string{"a.yaml": "id: 42\n"})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		first := &watched{until: regexp.MustCompile(`1 error in 1 file; 1 fixable with`), seen: make(chan struct{})}
		out := &relay{first: first, then: &watched{until: regexp.MustCompile(`changed at [0-9:]{8}\n(a.yaml is valid: |error.QT105. a.yaml:1:5: "id" needs a text, not a number \(7\))`), seen: make(chan struct{})}}
		go func() {
			<-first.seen
			if err := os.WriteFile("a.yaml", []byte(c.end), 0o600); err != nil {
				t.Error(err)
			}
			<-out.then.seen
			cancel()
		}()
		s := &cli.Streams{Streams: terminal.Streams{In: strings.NewReader(""), Out: out, Err: out, Width: 80}}
		if code := Execute(ctx, Core(), s, []string{"validate", "--watch", "a.yaml"}); code != c.code {
			t.Errorf("status %d, want %d:\n%s", code, c.code, out.first.text)
		}
	}
}

// relay writes to two watchers.
type relay struct{ first, then *watched }

// Write never fails.
func (r *relay) Write(p []byte) (int, error) {
	_, _ = r.first.Write(p)
	return r.then.Write(p)
}

// action is the part of a composite action that the tests read.
type action struct {
	Inputs map[string]struct {
		Description string `yaml:"description"`
		Default     string `yaml:"default"`
	} `yaml:"inputs"`
	Runs struct {
		Using string `yaml:"using"`
		Steps []struct {
			Name  string            `yaml:"name"`
			Shell string            `yaml:"shell"`
			Env   map[string]string `yaml:"env"`
			Run   string            `yaml:"run"`
			Uses  string            `yaml:"uses"`
		} `yaml:"steps"`
	} `yaml:"runs"`
}

const repository = "../.."

func decodeFile(t *testing.T, path string, to any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, path))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, to); err != nil {
		t.Fatal(err)
	}
}

// TestAction runs the steps of the action as GitHub does, in another repository.
func TestAction(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil || testing.Short() {
		t.Skip("SKIPPED: there is no bash, or the test is to be short")
	}
	var a action
	decodeFile(t, ".github/actions/validate/action.yml", &a)
	home, err := filepath.Abs(filepath.Join(repository, ".github/actions/validate"))
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	inFolder(t, map[string]string{"odd name.yaml": "id: 42\n", "warned.qtype.yaml": "id: shop # qtype:ignore QT917\n", "page.md": "```yaml\nid: 42\nflows: []\n```\n"})
	built := false // by an earlier run
	run := func(inputs map[string]string) (string, error) {
		var out string
		var failed error
		for _, step := range a.Runs.Steps {
			if step.Run == "" || failed != nil || built && step.Name == "build" {
				continue
			}
			built = built || step.Name == "build"
			c := testkit.Command(t, bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
			c.Env = append(os.Environ(), "GITHUB_ACTION_PATH="+home, "RUNNER_TEMP="+temp,
				"GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -ldflags=-w")) // linking is faster without debugging information
			for name, value := range step.Env {
				input := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(value, "${{ inputs."), "}}"))
				given, ok := inputs[input]
				if !ok {
					given = a.Inputs[input].Default
				}
				c.Env = append(c.Env, name+"="+given)
			}
			text, err := c.CombinedOutput()
			out, failed = out+string(text), err
		}
		return out, failed
	}
	out, err := run(nil)
	if err != nil || !strings.Contains(out, "::warning file=warned.qtype.yaml,line=1,col=10,") {
		t.Errorf("the folder itself: %v\n%s", err, out)
	}
	if out, err = run(map[string]string{"strict": "true", "markdown": "true"}); err == nil ||
		!strings.Contains(out, "::error file=warned.qtype.yaml,line=1,") || !strings.Contains(out, "::error file=page.md,line=2,col=5,") {
		t.Errorf("strict, with pages: %v\n%s", err, out)
	}
	if out, err = run(map[string]string{"paths": "'odd name.yaml' '*.qtype.yaml' $(touch hacked)"}); err == nil || !strings.Contains(out, "::error file=odd name.yaml,line=1,") {
		t.Errorf("paths: %v\n%s", err, out)
	}
	if _, err := os.Stat("hacked"); err == nil {
		t.Error("an input was read as a part of the script")
	}
	if out, err = run(map[string]string{"paths": "page.md", "sarif": "log.sarif"}); err == nil || strings.Contains(out, "::error") {
		t.Errorf("sarif: %v\n%s", err, out)
	}
	if log, err := os.ReadFile("log.sarif"); err != nil || !strings.Contains(string(log), `"ruleId": "QT105"`) {
		t.Errorf("the log: %v\n%s", err, log)
	}
}

// TestPreCommitHooks: the hooks of pre-commit use existing commands and flags.
func TestPreCommitHooks(t *testing.T) {
	var hooks []struct {
		ID       string `yaml:"id"`
		Entry    string `yaml:"entry"`
		Language string `yaml:"language"`
		Files    string `yaml:"files"`
		Passed   *bool  `yaml:"pass_filenames"`
	}
	decodeFile(t, ".pre-commit-hooks.yaml", &hooks)
	inFolder(t, map[string]string{"good.qtype.yaml": "id: shop\n", "bad.qtype.yml": "id: [\n", "other.yaml": "x",
		"good.qtype-test.yaml": "tests: []\n"})
	if len(hooks) < 3 {
		t.Fatalf("%d hooks", len(hooks))
	}
	for _, hook := range hooks {
		words := strings.Fields(hook.Entry)
		files := regexp.MustCompile(hook.Files)
		if hook.ID == "" || hook.Language != "golang" || words[0] != "qtype" && words[0] != "qtype-check" || !files.MatchString("a/bad.qtype.yml") || files.MatchString("other.yaml") {
			t.Errorf("%+v", hook)
		}
		if hook.Passed != nil && !*hook.Passed { // it finds its files itself
			if code, out, _ := onTerminal(t.Context(), 80, words[1:]...); code != cli.ExitFailed || !strings.Contains(out, "the file has no tests") {
				t.Errorf("%s: status %d, %s", hook.ID, code, out)
			}
			continue
		}
		if code, out, errText := onTerminal(t.Context(), 80, append(words[1:], "good.qtype.yaml")...); code != cli.ExitDone || out+errText != "" {
			t.Errorf("%s on a good document: status %d, %s%s", hook.ID, code, out, errText)
		}
		if code, _, _ := onTerminal(t.Context(), 80, append(words[1:], "bad.qtype.yml", "good.qtype.yaml")...); code != cli.ExitFailed {
			t.Errorf("%s on a bad document: status %d", hook.ID, code)
		}
	}
}
