package remotefs_test

import (
	"errors"
	"testing"

	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/remotefs"
)

func TestOpen_WithoutBuckets(t *testing.T) {
	for scheme, service := range map[string]string{"s3": "s3", "gs": "gs", "gcs": "gs", "az": "azure", "abfs": "azure", "abfss": "azure"} {
		_, err := remotefs.Open(t.Context(), scheme+"://bucket/key")
		var missing *parts.MissingError
		if !errors.As(err, &missing) || missing.Name != service {
			t.Errorf("got %v", err)
		}
	}
}
