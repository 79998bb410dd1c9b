package textfmt_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/textfmt"
)

func TestAmount(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 2.82e-05: "0.0000282", 0.123456: "0.1235", 12.345: "12.35", 1234567: "1234567", 3: "3", -0.5: "-0.5", 0.00099999: "0.001"} {
		if got := textfmt.Amount(x); got != want {
			t.Errorf("Amount(%v) is %s, want %s", x, got, want)
		}
	}
}
