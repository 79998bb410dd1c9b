package command

import (
	"regexp"
	"testing"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// The page about access describes flags that exist.
func TestServe_DocumentedFlags(t *testing.T) {
	flags := newServe(&cli.Streams{}).Flags()
	page := testkit.ReadFile(t, "../../docs/serve-security.md")
	for _, m := range regexp.MustCompile("--([a-z][a-z-]+)").FindAllStringSubmatch(page, -1) {
		if flags.Lookup(m[1]) == nil {
			t.Errorf("the page describes --%s, which does not exist", m[1])
		}
	}
}
