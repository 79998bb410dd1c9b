package remotefs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

func TestIsSame(t *testing.T) {
	folder := t.TempDir()
	working, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	file, other, link := filepath.Join(folder, "a.csv"), filepath.Join(folder, "b.csv"), filepath.Join(folder, "link.csv")
	for _, path := range []string{file, other} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skipf("no symbolic links here: %s", err)
	}
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{file, file, true}, {file, link, true}, {"file://" + file, file, true}, {file, other, false}, {file, "", false}, {"", "", false},
		{filepath.Join(folder, "new"), filepath.Join(folder, ".", "new"), true}, {"s3://b/k", "s3://b/k", true}, {"s3://b/k", "s3://b/l", false},
		{os.DevNull, os.DevNull, false}, {"new.csv", filepath.Join(working, "new.csv"), true}, {"new.csv", filepath.Join(folder, "new.csv"), false},
	} {
		if got := remotefs.IsSame(test.a, test.b); got != test.want {
			t.Errorf("%q and %q: got %t", test.a, test.b, got)
		}
	}
}
