package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain runs the program in the processes that the tests start.
func TestMain(m *testing.M) {
	if os.Getenv("CHATS") != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestProgram(t *testing.T) {
	chats := filepath.Join(t.TempDir(), "chats.jsonl")
	for _, test := range []struct{ args, want string }{
		{"validate testdata/desk.qtype.yaml", "is valid"},
		{"validate testdata/wrong.qtype.yaml", "did you mean \"journal\"?"},
		{"run testdata/desk.qtype.yaml -i hello --session me", "I received 1 message"},
		{"run testdata/desk.qtype.yaml -i hello --session me", "I received 3 messages"},
		{"memory list testdata/desk.qtype.yaml", "talk     me              4"},
		{"schema", "a file to which changes are appended"},
		{"version --parts", "journal memory sqlite"},
	} {
		cmd := exec.Command(os.Args[0], strings.Fields(test.args)...)
		cmd.Env = append(os.Environ(), "CHATS="+chats)
		if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), test.want) { // the text tells whether it failed
			t.Errorf("%s: no %q in\n%s", test.args, test.want, out)
		}
	}
}
