//go:build !hugot

package hugot

import (
	"errors"
	"testing"

	"github.com/qtype-dev/qtype/model"
)

func TestNew_NeedsTheTag(t *testing.T) {
	_, err := New(Config{Info: model.Info{ID: "vectors", Name: t.TempDir()}})
	if _, ok := errors.AsType[*BuildTagError](err); !ok || err.Error() != "model vectors: provider hugot needs a build with -tags hugot, such as make build-hugot" {
		t.Errorf("got %v", err)
	}
}
