package catalogue_test

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestPriceAt_Usages compares recorded usages with sums in testdata/usages.csv, which were
// computed from the price lists with exact decimal numbers, without this package: provider,
// model, time, tier, input, cached, written for 5m, 30m, 1h and 12h, audio, output, reasoning, dollars.
func TestPriceAt_Usages(t *testing.T) {
	file, err := os.Open("testdata/usages.csv")
	testkit.Must(t, err)
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	testkit.Must(t, err)
	if len(rows) < 200 {
		t.Errorf("%d usages, want 200", len(rows))
	}
	for line, row := range rows {
		on, err := time.Parse(time.RFC3339, row[2])
		testkit.Must(t, err)
		var n [9]int
		for i := range n {
			n[i], err = strconv.Atoi(row[4+i])
			testkit.Must(t, err)
		}
		want, err := strconv.ParseFloat(row[13], 64)
		testkit.Must(t, err)
		m, ok := catalogue.Lookup(row[0], row[1])
		if !ok {
			t.Errorf("line %d: %s is unknown", line+1, row[1])
			continue
		}
		got, ok := m.PriceAt(on, row[3], catalogue.Usage{Input: n[0], CachedInput: n[1], Writes: catalogue.CacheWrites{Minutes5: n[2], Minutes30: n[3], Hour1: n[4], Hours12: n[5]}, AudioInput: n[6], Output: n[7], Reasoning: n[8]})
		if !ok || math.Abs(got.Amount-want) > 0.000001 || len(got.Assumed) > 0 {
			t.Errorf("line %d: %v = %+v", line+1, row, got)
		}
	}
}
