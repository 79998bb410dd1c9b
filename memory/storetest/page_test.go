package storetest_test

import (
	"os"
	"strings"
	"testing"
)

// TestPage_QuotesExample checks that every Go block of docs/writing-a-store.md is
// part of example_test.go, which the tests compile and run, and that the page
// has all of its methods.
func TestPage_QuotesExample(t *testing.T) {
	page, err := os.ReadFile("../../docs/writing-a-store.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var quoted strings.Builder
	for i, part := range strings.Split(string(page), "```go\n")[1:] {
		block, _, closed := strings.Cut(part, "```")
		if !closed || !strings.Contains(string(example), block) {
			t.Errorf("Go block %d is not part of example_test.go:\n%s", i+1, block)
		}
		quoted.WriteString(block)
	}
	for line := range strings.Lines(string(example)) {
		if strings.HasPrefix(line, "func ") && !strings.Contains(quoted.String(), line) {
			t.Errorf("the page does not quote %s", line)
		}
	}
}
