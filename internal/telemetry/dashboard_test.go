package telemetry_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/qtype-dev/qtype/internal/telemetry/metrics"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// dashboard is the part of a dashboard of Grafana that is checked.
type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
}

var (
	metricName  = regexp.MustCompile(`qtype_([a-z_]+)`)
	described   = regexp.MustCompile(`fqName: "qtype_([a-z_]+)".*variableLabels: \{([^}]*)\}`)
	usedLabels  = regexp.MustCompile(`by \(([^)]*)\)|[{,] *([a-z_]+)[!=]~?=?"`)
	legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)
	scrapeLabel = map[string]bool{"job": true, "instance": true, "le": true}
)

// TestDashboard: the panels of the dashboard use metrics and labels that exist, and there is
// a panel for each metric.
func TestDashboard(t *testing.T) {
	raw, err := os.ReadFile("../../deploy/compose/grafana/qtype.json")
	testkit.Must(t, err)
	var d dashboard
	testkit.Must(t, json.Unmarshal(raw, &d))
	labels := labelsOf(metrics.New(false))
	shown := map[string]bool{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			names := metricName.FindAllStringSubmatch(target.Expr, -1)
			for _, name := range names {
				base := baseName(name[1])
				if shown[base] = true; labels[base] == nil {
					t.Errorf("%s: there is no metric qtype_%s", p.Title, name[1])
					continue
				}
				for _, label := range labelsIn(target.Expr, target.LegendFormat) {
					if !labels[base][label] && !scrapeLabel[label] {
						t.Errorf("%s: qtype_%s has no label %q", p.Title, name[1], label)
					}
				}
			}
		}
	}
	for name := range labels {
		if !shown[name] {
			t.Errorf("no panel shows qtype_%s", name)
		}
	}
}

// labelsOf returns the labels of each metric by its name.
func labelsOf(m *metrics.Metrics) map[string]map[string]bool {
	all := make(chan *prometheus.Desc, 100)
	go func() {
		defer close(all)
		m.Registry().(prometheus.Collector).Describe(all)
	}()
	labels := map[string]map[string]bool{}
	for d := range all {
		if found := described.FindStringSubmatch(d.String()); found != nil {
			labels[found[1]] = map[string]bool{}
			for _, l := range strings.FieldsFunc(found[2], func(r rune) bool { return r == ',' || r == ' ' }) {
				labels[found[1]][l] = true
			}
		}
	}
	return labels
}

// baseName returns a name without the suffix of a series of a histogram.
func baseName(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
}

func labelsIn(expr, legend string) []string {
	var all []string
	for _, found := range usedLabels.FindAllStringSubmatch(expr, -1) {
		all = append(all, strings.FieldsFunc(found[1]+" "+found[2], func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	for _, found := range legendLabel.FindAllStringSubmatch(legend, -1) {
		all = append(all, found[1])
	}
	return all
}
