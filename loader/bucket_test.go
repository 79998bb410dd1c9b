package loader_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/loader"
)

func TestLoad_WithoutBuckets(t *testing.T) {
	path := write(t, "app.yaml", "id: app\ndescription: !include s3://bucket/x.yaml\n")
	_, list := loader.Load(t.Context(), path, loader.Options{Lookup: noEnv})
	if len(list) != 1 || list[0].Code != "QT006" || !strings.Contains(list[0].Message, "this program has no file system s3") {
		t.Errorf("got %v", list)
	}
}
