package temporal

import (
	"slices"
	"testing"
	"time"
)

// TestLanes: the lane that was used last is used next, and those that are too old, or were not used for too long, are used no more.
func TestLanes(t *testing.T) {
	now := time.Now()
	first, second, old := &lane{began: now}, &lane{began: now}, &lane{began: now.Add(-2 * maxLaneTime)}
	var l lanes
	if l.take("q") != nil {
		t.Error("there is a lane before any is put")
	}
	for _, one := range []*lane{first, second} {
		if ended := l.put("q", one); len(ended) > 0 {
			t.Errorf("a new lane is old: %v", ended)
		}
	}
	if l.take("other") != nil || l.take("q") != second {
		t.Error("the next lane is not the last one of its queue")
	}
	if ended := l.put("q", old); !slices.Equal(ended, []*lane{old}) {
		t.Errorf("got %v, want the old lane", ended)
	}
	first.freed = now.Add(-2 * maxLaneIdle)
	if ended := l.put("q", second); !slices.Equal(ended, []*lane{first}) {
		t.Errorf("got %v, want the lane that was not used", ended)
	}
	if all := l.takeAll(); !slices.Equal(all, []*lane{second}) || l.take("q") != nil {
		t.Errorf("got %v, want the lane that is left", all)
	}
}
