package value_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit/valuetest"
	"github.com/qtype-dev/qtype/spec/value"
)

// record is a JSON object of about 1 kB, as a model or a service returns it.
var record = `{"id":8812,"label":"refund","score":0.93,"text":"` + strings.Repeat("I am sorry that the parcel arrived crushed. ", 15) +
	`","tags":["a","b","c"],"items":[{"sku":"x","price":1.5},{"sku":"y","price":2}],"none":null,"ok":true}`

func BenchmarkParse(b *testing.B) {
	b.SetBytes(int64(len(record)))
	for b.Loop() {
		if _, err := value.Parse(record); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncodingJSON is the reference for BenchmarkParse.
func BenchmarkEncodingJSON(b *testing.B) {
	b.SetBytes(int64(len(record)))
	for b.Loop() {
		var v any
		if err := json.Unmarshal([]byte(record), &v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkJSON(b *testing.B) {
	v := valuetest.Parse(b, record)
	var buf []byte
	b.SetBytes(int64(len(record)))
	for b.Loop() {
		buf = value.AppendJSON(buf[:0], v)
	}
}

func BenchmarkCoerceRecord(b *testing.B) {
	item := valuetest.Custom(b, "Item", []string{"sku: text", "price: float"})
	answer := valuetest.Custom(b, "Answer", []string{"id: int", "label: text", "score: float", "text: text", "tags: list[text]", "items: list[Item]", "none: text?", "ok: boolean"}, item)
	t, v := valuetest.Type(b, "Answer", answer), valuetest.Parse(b, record)
	for b.Loop() {
		if _, err := value.Coerce(t, v); err != nil {
			b.Fatal(err)
		}
	}
}
