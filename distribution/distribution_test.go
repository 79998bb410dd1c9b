package distribution_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/distribution"
)

// TestWith_Convert: a Go program converts the files of systems that only the distribution has.
func TestWith_Convert(t *testing.T) {
	const workflow = `{"id": "w", "start": "A", "states": [{"name": "A", "type": "inject", "data": {"x": 1}, "end": true}]}`
	options := qtype.ConvertOptions{Kind: qtype.ConvertXFlow, Path: "w.json", From: strings.NewReader(workflow)}
	text, list := qtype.Convert(distribution.With(t.Context()), options)
	if list.Errors() > 0 || !strings.Contains(text, "flows:") {
		t.Errorf("%v\n%s", list, text)
	}
	if _, list := qtype.Convert(distribution.With(t.Context()), qtype.ConvertOptions{Kind: qtype.ConvertXFlow, Path: filepath.Join(t.TempDir(), "none.json")}); list.Errors() == 0 {
		t.Error("a file that does not exist is converted")
	}
}
