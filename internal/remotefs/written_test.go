package remotefs_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

// TestClaim: a file has one writer in a run, also while several attempts are under way; one that fails gives its files up.
func TestClaim(t *testing.T) {
	run := remotefs.WithWritten(t.Context())
	one, failOne := remotefs.WithAttempt(run)
	inner, _ := remotefs.WithAttempt(one)
	other, failOther := remotefs.WithAttempt(run)
	if !remotefs.Claim(inner, "a.csv", 1) || remotefs.Claim(other, "./a.csv", 2) || !remotefs.Claim(inner, "a.csv", 1) {
		t.Error("the first writer has the file")
	}
	failOther()
	if remotefs.Claim(run, "a.csv", 3) {
		t.Error("another attempt has failed")
	}
	failOne()
	if !remotefs.Claim(other, "a.csv", 2) {
		t.Error("the attempt of the writer has failed")
	}
	failOne()
	if remotefs.Claim(run, "a.csv", 3) {
		t.Error("the file is that of another writer since")
	}
	remotefs.Release(run, "a.csv", 2)
	if !remotefs.Claim(run, "a.csv", 3) || !remotefs.Claim(t.Context(), "a.csv", 4) {
		t.Error("the file was not completed, or there is no run")
	}
}
