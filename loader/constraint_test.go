package loader

import (
	"math"
	"reflect"
	"testing"
)

// TestSatisfies has values at the bounds of each constraint.
func TestSatisfies(t *testing.T) {
	zero, two := 0, 2
	for _, c := range []struct {
		value any
		rule  string
		want  bool
	}{
		{1, "gt=0", true}, {0, "gt=0", false}, {uint8(3), "gt=2", true}, {-1, "gte=0", false}, {0, "gte=0", true},
		{0.5, "gt=0,lte=1", true}, {1.5, "gt=0,lte=1", false}, {math.NaN(), "gte=0", false}, {2, "lt=2", false}, {1, "lt=2", true},
		{"é", "min=2", false}, {"éé", "min=2,max=2", true}, {"ééé", "max=2", false}, {[]int{1}, "min=2", false}, {map[string]int{"a": 1}, "min=1,max=50", true},
		{"json", "oneof=json xml", true}, {"JSON", "oneof=json xml", false}, {"", "oneof=json xml", false}, {2, "oneof=1 2", true}, {3, "oneof=1 2", false},
		{0, "omitempty,gt=0", true}, {-1, "omitempty,gt=0", false}, {"", "omitempty,oneof=auto none", true}, {"x", "omitempty,oneof=auto none", false},
		{&zero, "omitempty,gt=0", false}, {&two, "omitempty,gt=0", true}, {(*int)(nil), "omitempty,gt=0", true}, {(*int)(nil), "gt=0", false},
	} {
		if got := satisfies(reflect.ValueOf(c.value), c.rule); got != c.want {
			t.Errorf("%v (%T), %s: got %v", c.value, c.value, c.rule, got)
		}
	}
}
