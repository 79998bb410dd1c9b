package problem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/server/problem"
)

func TestWrite(t *testing.T) {
	p := problem.New(503, "busy", "the server has %d runs", 7)
	p.RetryAfter = 1500 * time.Millisecond
	p.Errors = []problem.Field{{Pointer: "/a/0", Detail: "expected a number"}}
	w := httptest.NewRecorder()
	problem.Write(w, p)
	h := w.Result().Header
	if w.Code != 503 || h.Get("Content-Type") != "application/problem+json" || h.Get("Retry-After") != "2" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("status %d, headers %v", w.Code, h)
	}
	var got struct {
		Status              int
		Code, Title, Detail string
		Errors              []problem.Field
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Status != 503 || got.Code != "busy" || got.Title != "Service Unavailable" || got.Detail != "the server has 7 runs" || len(got.Errors) != 1 || got.Errors[0] != p.Errors[0] {
		t.Errorf("body %+v", got)
	}
}

func TestWrite_NoRetry(t *testing.T) {
	w := httptest.NewRecorder()
	problem.Write(w, &problem.Problem{Status: 404, Code: "not_found", Title: "Not Found"})
	if _, found := w.Result().Header["Retry-After"]; found || w.Code != 404 {
		t.Errorf("status %d, headers %v", w.Code, w.Result().Header)
	}
}

func TestOf(t *testing.T) {
	p := problem.New(400, "bad", "wrong")
	if got := problem.Of(fmt.Errorf("reading: %w", p)); got != p {
		t.Errorf("wrapped: %v", got)
	}
	if got := problem.Of(errors.New("other")); got != nil {
		t.Errorf("another error: %v", got)
	}
	if got := problem.Of(nil); got != nil {
		t.Errorf("no error: %v", got)
	}
	if got := (&problem.Problem{Title: "Bad Request"}).Error(); got != "Bad Request" {
		t.Errorf("without detail: %q", got)
	}
}
