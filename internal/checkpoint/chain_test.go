package checkpoint_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// closed makes a journal with finished rows and closes it.
func closed(t *testing.T, rows int64) (path string, text []byte) {
	t.Helper()
	j := begin(t, rows)
	testkit.Must(t, j.Close())
	return j.Path(), []byte(testkit.ReadFile(t, j.Path()))
}

func TestJournal_OtherKey(t *testing.T) {
	path, text := closed(t, 3)
	for name, key := range map[string][]byte{"another": []byte("fedcba9876543210fedcba9876543210"), "none": nil} {
		_, err := checkpoint.Open(path, key)
		if !errors.Is(err, checkpoint.ErrUnauthentic) || !strings.Contains(err.Error(), "was not written with the key in ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now := testkit.ReadFile(t, path); now != string(text) {
		t.Error("the journal was changed")
	}
}

// TestJournal_MadeWithoutKey opens a journal that was made without the key.
func TestJournal_MadeWithoutKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, err := checkpoint.Create(path, checkpoint.Header{Flow: "main"}, nil)
	testkit.Must(t, err)
	save(t, j, input(1), rowOf(1), true)
	testkit.Must(t, j.Close())
	if _, err := checkpoint.Open(path, testKey); !errors.Is(err, checkpoint.ErrUnauthentic) {
		t.Error(err)
	}
	again, err := checkpoint.Open(path, nil)
	testkit.Must(t, err)
	expect(t, again, input(1), "row 1")
	testkit.Must(t, again.Close())
}

// TestJournal_Changed changes, exchanges and removes parts of a journal: the rows of what
// is left are those that were saved, or the journal is refused.
func TestJournal_Changed(t *testing.T) {
	path, text := closed(t, 4)
	_, other := closed(t, 4)
	check := func(name string, changed []byte) {
		t.Helper()
		testkit.Must(t, os.WriteFile(path, changed, 0o600))
		j, err := checkpoint.Open(path, testKey)
		if err != nil {
			return
		}
		defer func() { _ = j.Close() }()
		for n := int64(1); n <= 4; n++ {
			if got := loaded(t, j, input(n)); got != "unfinished" && got != fmt.Sprint("row ", n) {
				t.Errorf("%s: row %d became %q", name, n, got)
			}
		}
		if got := loaded(t, j, input(5)); got != "unfinished" {
			t.Errorf("%s: row 5 became %q", name, got)
		}
	}
	for at := range text {
		changed := slices.Clone(text)
		changed[at] ^= 1
		check(fmt.Sprint("byte ", at), changed)
		check(fmt.Sprint("cut at ", at), text[:at])
		check(fmt.Sprint("without byte ", at), slices.Delete(slices.Clone(text), at, at+1))
		if at < len(other) {
			check(fmt.Sprint("the end of another at ", at), append(slices.Clone(text[:at]), other[at:]...))
		}
	}
	check("rows twice", append(slices.Clone(text), text[len(text)-40:]...))
}

func TestJournal_EmptyFile(t *testing.T) {
	path := testkit.WriteFile(t, "j", "")
	if _, err := checkpoint.Open(path, testKey); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestUserKey(t *testing.T) {
	home := filepath.Join(t.TempDir(), "state")
	t.Setenv("QTYPE_HOME", home)
	key, err := checkpoint.UserKey()
	if err != nil || len(key) != 32 {
		t.Fatal(len(key), err)
	}
	again, err := checkpoint.UserKey()
	if err != nil || !slices.Equal(key, again) {
		t.Error("another key", err)
	}
	path := filepath.Join(home, "journal.key")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	entries, err := os.ReadDir(home)
	if err != nil || len(entries) != 1 {
		t.Error(entries, err)
	}
	testkit.Must(t, os.Chmod(path, 0o644))
	if _, err := checkpoint.UserKey(); err == nil || !strings.Contains(err.Error(), "has mode 0644, so that others can read it: set it to 0600") {
		t.Error(err)
	}
	testkit.Must(t, os.Chmod(path, 0o600))
	testkit.Must(t, os.WriteFile(path, []byte("short"), 0o600))
	if _, err := checkpoint.UserKey(); err == nil || !strings.Contains(err.Error(), "is not a key of 32 bytes") {
		t.Error(err)
	}
}

// TestUserKey_NoFolder has a folder in which no key can be stored.
func TestUserKey_NoFolder(t *testing.T) {
	t.Setenv("QTYPE_HOME", filepath.Join(testkit.WriteFile(t, "file", ""), "state"))
	if key, err := checkpoint.UserKey(); key != nil || err != nil && !strings.Contains(err.Error(), "not a directory") {
		t.Error(key, err)
	}
}
