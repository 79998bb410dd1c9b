//go:build !cloud

package blob_test

import (
	"errors"
	"testing"

	"github.com/qtype-dev/qtype/internal/blob"
)

func TestNotBuilt(t *testing.T) {
	for _, scheme := range []string{"s3", "gs", "gcs", "az", "abfs", "abfss"} {
		_, err := blob.Open(t.Context(), scheme+"://bucket/key")
		var missing *blob.NotBuiltError
		if !errors.As(err, &missing) || err.Error() != scheme+":// needs a build with -tags cloud" {
			t.Errorf("got %v", err)
		}
	}
}
