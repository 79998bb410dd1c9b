package telemetry_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/telemetry/metrics"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/steps"
)

// TestDocs_Example runs the first document of docs/telemetry.md with its sink replaced.
func TestDocs_Example(t *testing.T) {
	page := testkit.ReadFile(t, "../../docs/telemetry.md")
	document := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(page)[1]
	c := newCollector(t)
	app := open(t, strings.Replace(document, "http://localhost:6006", c.URL, 1))
	e := openExporter(t, app, nil)
	results := run(e.Context(t.Context()), t, app, "support", "question", "Where is my parcel?")
	e.Flush(t.Context())
	if got := text(results[0], "answer"); got != "It arrives tomorrow." || c.resource["openinference.project.name"] != "shop" || c.paths[0] != "/v1/traces" {
		t.Errorf("%q, %v at %v", got, c.resource, c.paths)
	}
	_, set := c.span(t, "chat practice")
	if set["llm.cost.total"] == nil {
		t.Errorf("the call has no cost: %v", set)
	}
	for _, s := range c.sorted() {
		name := strings.NewReplacer("support", "ID", "respond", "ID", "chat practice", "chat MODEL", "memory.chat", "memory.ID").Replace(s.Name)
		if !strings.Contains(page, "| `"+name+"` |") {
			t.Errorf("the page has no span %s", name)
		}
	}
}

// TestDocs_Metrics: the page lists all metrics.
func TestDocs_Metrics(t *testing.T) {
	page := testkit.ReadFile(t, "../../docs/telemetry.md")
	app, m := open(t, withEmbedder(assistant)), metrics.New(false)
	run(steps.WithObserver(t.Context(), m), t, app, "talk", "question", "Weather?")
	m.Request("GET /", "GET", 200, 0)
	names := regexp.MustCompile(`(?m)^# TYPE qtype_(\S+)`).FindAllStringSubmatch(scrape(t, m), -1)
	if len(names) < 15 {
		t.Errorf("only %d metrics", len(names))
	}
	for _, n := range names {
		if !strings.Contains(page, "`"+n[1]+"`") {
			t.Errorf("the page has no metric %s", n[1])
		}
	}
}
