package runtime

import (
	"errors"
	"testing"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/steps"
)

// TestErrorCode_Replayed: a failure has the same code and text after it was saved.
func TestErrorCode_Replayed(t *testing.T) {
	for want, err := range map[string]*steps.Error{
		"http_429": {Step: "a", Err: &steps.Error{Step: "b", Err: &model.Error{Model: "m", Status: 429}}},
		"timeout":  {Step: "a", Err: &TimeoutError{}},
		"input":    {Err: errors.New("no")},
		"failed":   {Step: "a", Err: errors.New("no")},
	} {
		enc, dec, got := checkpoint.RowEncoder{Code: ErrorCode}, checkpoint.RowDecoder{}, &steps.Row{}
		if e := dec.Decode(enc.Append(nil, &steps.Row{Err: err}), got); e != nil {
			t.Fatal(e)
		}
		if ErrorCode(err) != want || ErrorCode(got.Err) != want || got.Err.Error() != err.Error() {
			t.Errorf("got %s: %v, want %s: %v", ErrorCode(got.Err), got.Err, want, err)
		}
	}
}
