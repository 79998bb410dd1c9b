package access_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// lineOf returns the line of a key file.
func lineOf(name, key string) string {
	hash := sha256.Sum256([]byte(key))
	return name + ":sha256:" + hex.EncodeToString(hash[:]) + "\n"
}

func TestNew_InvalidKeys(t *testing.T) {
	tests := map[string]string{
		"ci":                                 "API key 1 is not name:key",
		"ci:" + ciKey + ",":                  "API key 2 is not name:key",
		"ci:short":                           `the API key "ci" is shorter than 16 characters`,
		"ci:" + ciKey + ",ci:" + adaKey:      `two API keys have the name "ci"`,
		"ci:" + ciKey + ",ada:" + ciKey:      `the API keys "ci" and "ada" are equal`,
		":" + ciKey:                          "the name of API key 1 may contain only letters",
		"role/x:" + ciKey:                    "the name of API key 1 may contain only letters",
		"ci:with a blank 0123456789":         `the API key "ci" has characters that a header cannot contain`,
		"ci:with\na line break 0123456789":   `the API key "ci" has characters that a header cannot contain`,
		"a:" + ciKey + ",user:ada:" + adaKey: "",
	}
	for text, want := range tests {
		_, err := access.New(access.Config{Keys: text})
		if want == "" && err == nil {
			continue // the name is user, the key begins with ada:
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "0123456789") {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestNew_InvalidKeyFile(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	tests := map[string]string{
		"":                         "there is no API key",
		"# only a comment\n":       "there is no API key",
		"ci:" + ciKey:              "line 1: not name:sha256:HEX",
		"# x\n\nci:md5:" + hash:    "line 3: not name:sha256:HEX",
		"ci:sha256:" + hash[1:]:    `line 1: the hash of "ci" is not 64 hexadecimal digits`,
		"ci:sha256:" + hash + " x": `line 1: the hash of "ci" is not 64 hexadecimal digits`,
		"c i:sha256:" + hash:       "line 1: the name may contain only letters",
		"a:sha256:" + hash + "\na:sha256:" + strings.Repeat("cd", 32): `line 2: two API keys have the name "a"`,
		"a:sha256:" + hash + "\nb:sha256:" + hash:                     `line 2: the API keys "a" and "b" are equal`,
	}
	for text, want := range tests {
		_, err := access.New(access.Config{KeyFile: testkit.WriteFile(t, "keys", text)})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), ciKey) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	if _, err := access.New(access.Config{KeyFile: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a missing file is accepted")
	}
	if _, err := access.New(access.Config{KeyFile: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("folder: %v", err)
	}
	path := testkit.WriteFile(t, "keys", lineOf("ci", ciKey))
	if _, err := access.New(access.Config{KeyFile: path, Keys: "ci:" + adaKey}); err == nil || !strings.Contains(err.Error(), `two API keys have the name "ci"`) {
		t.Errorf("same name in file and environment: %v", err)
	}
	for _, mode := range []os.FileMode{0o644, 0o604, 0o602, 0o620} {
		testkit.Must(t, os.Chmod(path, mode))
		if _, err := access.New(access.Config{KeyFile: path}); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	for _, mode := range []os.FileMode{0o600, 0o400, 0o440, 0o640} {
		testkit.Must(t, os.Chmod(path, mode))
		if _, err := access.New(access.Config{KeyFile: path}); err != nil {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

func TestHashKey(t *testing.T) {
	var stdout, stderr bytes.Buffer
	testkit.Must(t, access.PrintHashKey(&stdout, &stderr, "ci"))
	key := regexp.MustCompile(`^API key of ci, shown only now: (qtype_[A-Za-z0-9_-]{43})\n$`).FindStringSubmatch(stderr.String())
	if key == nil || stdout.String() != lineOf("ci", key[1]) {
		t.Fatalf("stderr %q, stdout %q", stderr.String(), stdout.String())
	}
	s := start(t, access.Config{KeyFile: testkit.WriteFile(t, "keys", "# keys\n"+stdout.String())}, nil)
	if got := s.get(t, "/", "X-API-Key: "+key[1]); got.body != "ci " {
		t.Errorf("got %d %s", got.status, got.body)
	}
	other, _, err := access.HashKey("ci")
	if err != nil || other == key[1] {
		t.Errorf("the second key is %q, %v", other, err)
	}
	if err := access.PrintHashKey(&stdout, &stderr, "a:b"); err == nil {
		t.Error("a name with a colon is accepted")
	}
}

// The duration of a comparison does not depend on the position of a key.
func TestKeys_AllAreCompared(t *testing.T) {
	if got := access.FindRepeated(ciKey); got != "second" {
		t.Errorf("found %q", got)
	}
}

// A changed file applies without a restart; an invalid one changes nothing.
func TestControl_KeyFileReload(t *testing.T) {
	path := testkit.WriteFile(t, "keys", lineOf("ci", ciKey))
	s := start(t, access.Config{KeyFile: path, Keys: "env:env-key-0123456789abcdef"}, nil)
	statuses := func() (ci, ada int) {
		access.CheckFilesNow(s.control)
		ci = s.get(t, "/", "X-API-Key: "+ciKey).status
		return ci, s.get(t, "/", "X-API-Key: "+adaKey).status
	}
	write := func(text string) {
		testkit.Must(t, os.WriteFile(path+".new", []byte(text), 0o600))
		testkit.Must(t, os.Rename(path+".new", path))
	}
	if ci, ada := statuses(); ci != 200 || ada != 401 {
		t.Fatalf("first: %d, %d", ci, ada)
	}
	write(lineOf("ada", adaKey))
	if ci, ada := statuses(); ci != 401 || ada != 200 {
		t.Errorf("replaced: %d, %d", ci, ada)
	}
	write("not a key file")
	if ci, ada := statuses(); ci != 401 || ada != 200 || !strings.Contains(s.log.String(), "API keys not reloaded") {
		t.Errorf("invalid: %d, %d", ci, ada)
	}
	testkit.Must(t, os.Remove(path))
	if ci, ada := statuses(); ci != 401 || ada != 200 {
		t.Errorf("removed: %d, %d", ci, ada)
	}
	write(lineOf("ci", ciKey))
	testkit.Must(t, os.Chtimes(path, time.Time{}, time.Unix(1, 0)))
	if ci, ada := statuses(); ci != 200 || ada != 401 {
		t.Errorf("repaired: %d, %d", ci, ada)
	}
	if got := s.get(t, "/", "X-API-Key: env-key-0123456789abcdef"); got.status != 200 {
		t.Errorf("key of the environment: %d", got.status)
	}
}
