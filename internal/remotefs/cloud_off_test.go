//go:build !cloud

package remotefs_test

import (
	"errors"
	"testing"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

func TestOpen_CloudNotBuilt(t *testing.T) {
	for _, scheme := range []string{"s3", "gs", "gcs", "az", "abfs", "abfss"} {
		_, err := remotefs.Open(t.Context(), scheme+"://bucket/key")
		var missing *remotefs.BuildTagError
		if !errors.As(err, &missing) || err.Error() != scheme+":// needs a build with -tags cloud" {
			t.Errorf("got %v", err)
		}
	}
}
