package steps_test

import (
	"testing"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// A constant address that this build cannot use is an error when the step is
// built, not once for each row.
func TestBuild_ChecksConstantAddresses(t *testing.T) {
	l := declare(t, nil, "name: text", "file: text")
	for _, tt := range []struct {
		step spec.Step
		want string
	}{
		{&spec.FileSource{StepBase: l.base("r", nil, []string{"name"}), Path: spec.PathRef{URI: "ftp://x/y.csv"}},
			"ftp://x/y.csv: ftp:// is not supported; these are: file, http, https, s3, gs, gcs, az, azure, abfs, abfss"},
		{&spec.FileSource{StepBase: l.base("r", nil, []string{"name"}), Path: spec.PathRef{URI: "s3://bucket"}},
			"s3://bucket: missing object key: s3://BUCKET/PATH expected"},
		{&spec.FileWriter{StepBase: l.base("w", []string{"name"}, []string{"file"}), Path: spec.PathRef{URI: "https://u:word@x/y.csv"}},
			"https://x/y.csv: https:// can only be read"},
	} {
		if _, err := steps.Build(tt.step, &steps.Env{Slots: l}); err == nil || err.Error() != tt.want {
			t.Errorf("got %v, expected %s", err, tt.want)
		}
	}
}
