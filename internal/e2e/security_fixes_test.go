package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestSecurityFixes checks that each row of the page of security fixes names a test, and that
// the file of the test has it.
func TestSecurityFixes(t *testing.T) {
	const page = "docs/security-fixes.md"
	link := regexp.MustCompile(`\[(Test\w+)\]\(([^)]+)\)`)
	rows := 0
	for number, line := range strings.Split(testkit.ReadFile(t, page), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| --- ") || strings.HasPrefix(line, "| Reproduction ") {
			continue
		}
		rows++
		links := link.FindAllStringSubmatch(line, -1)
		if len(links) == 0 {
			t.Errorf("%s:%d: the row has no link to a test", page, number+1)
		}
		for _, l := range links {
			text, err := os.ReadFile(filepath.Join(filepath.Dir(page), filepath.FromSlash(l[2])))
			if err != nil || !bytes.Contains(text, []byte("\nfunc "+l[1]+"(t *testing.T")) {
				t.Errorf("%s:%d: %s is not a test of %s: %v", page, number+1, l[1], l[2], err)
			}
		}
	}
	if rows == 0 {
		t.Error("the page has no rows")
	}
}
