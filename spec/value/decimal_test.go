package value_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// A decimal keeps its digits, or the conversion fails.
func TestCoerce_Decimal(t *testing.T) {
	for _, c := range []struct {
		typ, digits string
		want        any // an error ends with it if it begins with "!"
	}{
		{"text", "12.50", "12.50"},
		{"text", "-0.000000000000000000001", "-0.000000000000000000001"},
		{"float", "12.50", 12.5},
		{"float", "0.1", 0.1},
		{"float", "1e3", 1000.0},
		{"float", "0.1000000000000000055511151231257827", "!expected float, got the decimal 0.1000000000000000055511151231257827"},
		{"float", "12345678901234567890.5", "!expected float, got the decimal 12345678901234567890.5"},
		{"float", "1e999", "!expected float, got the decimal 1e999"},
		{"int", "7.00", int64(7)},
		{"int", "7.50", "!expected int, got the decimal 7.50"},
		{"boolean", "1", true},
		{"any", "12.5", 12.5},
		{"any", "0.12345678901234567890123", value.Decimal("0.12345678901234567890123")},
	} {
		got, err := value.Coerce(spec.Type{Name: c.typ}, value.Decimal(c.digits))
		text, _ := c.want.(string)
		if reason, fails := strings.CutPrefix(text, "!"); fails {
			if err == nil || err.Error() != reason {
				t.Errorf("%s as %s: got %v, %v; want %s", c.digits, c.typ, got, err, reason)
			}
			continue
		}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s as %s: got %v, %v; want %v", c.digits, c.typ, got, err, c.want)
		}
	}
	if got, err := value.Coerce(spec.Type{Name: "float"}, value.Decimal("NaN")); err != nil || !math.IsNaN(got.(float64)) {
		t.Errorf("NaN: %v, %v", got, err)
	}
	list := value.NewRecord("", value.Field{Name: "price", Value: value.Decimal("12.50")})
	if got := string(value.JSON(list)); got != `{"price":12.50}` {
		t.Error(got)
	}
}
