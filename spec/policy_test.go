package spec_test

import (
	"testing"

	"github.com/qtype-dev/qtype/spec"
)

// TestPolicies_LimitsAreKeysOfMemory checks that each limit of a policy is a
// field of Memory with the same key, that its default is allowed, and that
// Limits returns its value.
func TestPolicies_LimitsAreKeysOfMemory(t *testing.T) {
	for _, row := range spec.Policies() {
		if row.Doc == "" {
			t.Errorf("policy %s has no doc", row.Name)
		}
		for _, l := range row.Limits {
			if !spec.IsMemoryKey(l.Key) {
				t.Errorf("policy %s: the limit %s is not a key of Memory", row.Name, l.Key)
				continue
			}
			if value, ok := l.Default(); ok && !l.Allows(value) {
				t.Errorf("policy %s: %s cannot have its default %v", row.Name, l.Key, value)
			}
			if l.Doc == "" || l.Unit == "" {
				t.Errorf("policy %s: the limit %s has no doc or no unit", row.Name, l.Key)
			}
		}
		for _, key := range row.Settings {
			if !spec.IsMemoryKey(key) {
				t.Errorf("policy %s: the setting %s is not a key of Memory", row.Name, key)
			}
		}
	}
}

// TestMemory_Limits checks that a memory has the limits of its policy only.
func TestMemory_Limits(t *testing.T) {
	m := spec.Memory{Policy: spec.PolicyRoundWindow, TokenLimit: 100, NRounds: 3, MaxContext: 8000}
	got := m.Limits()
	if len(got) != 2 || got["n_rounds"] != 3 || got["max_context"] != 8000 {
		t.Errorf("got %v", got)
	}
	row, ok := spec.FindPolicy("")
	if !ok || row.Name != spec.PolicyFlush {
		t.Errorf("the default policy is %v", row.Name)
	}
	if _, ok := spec.FindPolicy("lru"); ok {
		t.Error("an unknown policy was found")
	}
}
