package uistream_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/internal/server/uistream"
	"github.com/qtype-dev/qtype/spec"
)

// TestEncoder_ConcurrentParts checks that texts which arrive at the same time are not mixed.
func TestEncoder_ConcurrentParts(t *testing.T) {
	e := uistream.NewEncoder(schema.NewFlow(&spec.Flow{}), "run_1", nil)
	var b []byte
	for _, ev := range []runs.Event{
		{Type: runs.TextDelta, Step: "a", Row: 1, Text: "one "},
		{Type: runs.TextDelta, Step: "b", Row: 1, Text: "eins "},
		{Type: runs.ReasoningDelta, Step: "a", Row: 2, Text: "un "},
		{Type: runs.TextDelta, Step: "a", Row: 1, Text: "two"},
		{Type: runs.TextDelta, Step: "a", Row: 2, Text: "deux"},
		{Type: runs.StepFinished, Step: "a", Row: 1},
		{Type: runs.TextDelta, Step: "b", Row: 1, Text: "zwei"},
		{Type: runs.RunFinished},
	} {
		b = e.Append(b, &ev)
	}
	var got []string
	for line := range strings.SplitSeq(string(b), "\n") {
		if data, ok := strings.CutPrefix(line, "data: {\"type\":"); ok && !strings.HasPrefix(data, `"finish`) {
			got = append(got, strings.NewReplacer(`"id":`, "", `"delta":`, "", `"`, "", "}", "").Replace(data))
		}
	}
	want := []string{"text-start,txt_1", "text-delta,txt_1,one ", "text-start,txt_2", "text-delta,txt_2,eins ",
		"reasoning-start,rsn_3", "reasoning-delta,rsn_3,un ", "text-delta,txt_1,two",
		"reasoning-end,rsn_3", "text-start,txt_4", "text-delta,txt_4,deux",
		"text-end,txt_1", "text-end,txt_2", "text-end,txt_4", "text-start,txt_5", "text-delta,txt_5,zwei", "text-end,txt_5"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
