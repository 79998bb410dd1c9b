package temporal

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestMetrics: metrics of the SDK have the same labels whatever tags they have, and no label for a session of a user.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newMetrics(registry).WithTags(map[string]string{"namespace": "default", "client_name": "x"})
	m.Counter("temporal_request").Inc(2)
	m.WithTags(map[string]string{"operation": "Poll", "workflow_type": "none"}).Counter("temporal_request").Inc(3)
	m.Gauge("temporal_num_pollers").Update(4)
	m.Timer("temporal_activity_schedule_to_start_latency").Record(20 * time.Millisecond)
	want := `# HELP temporal_request_total Of the SDK of Temporal: temporal request.
# TYPE temporal_request_total counter
temporal_request_total{activity_type="",failure_reason="",namespace="default",operation="",poller_type="",status_code="",task_queue="",worker_type="",workflow_type=""} 2
temporal_request_total{activity_type="",failure_reason="",namespace="default",operation="Poll",poller_type="",status_code="",task_queue="",worker_type="",workflow_type=""} 3
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "temporal_request_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(registry); n != 4 || err != nil {
		t.Errorf("%d metrics, %v", n, err)
	}
}
