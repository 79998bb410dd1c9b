package tool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/tool"
)

// auditOf returns an Audit that keeps its records; those of a broken event are refused.
func auditOf(records *[]tool.AuditRecord, broken tool.AuditEvent) *tool.Audit {
	redactor := redact.New()
	redactor.Add("marker-7716-secret")
	return &tool.Audit{Application: "shop", Redactor: redactor, Principal: func(context.Context) string { return "ada" },
		Write: func(r tool.AuditRecord) error {
			if r.Event == broken {
				return errors.New("no space left on device")
			}
			*records = append(*records, r)
			return nil
		}}
}

// TestAudit_Records checks the records of an approved call, and that they have no secrets.
func TestAudit_Records(t *testing.T) {
	var records []tool.AuditRecord
	a := auditOf(&records, "")
	ctx := tool.WithAuditFlow(tool.WithCaller(t.Context(), tool.Caller{Step: "help", Session: "s", Row: 2, CallID: "c1", AuditCall: a.NewCall()}), "talk")
	args := []byte(`{"order": 12345678901234567890, "password": "abc", "note": "marker-7716-secret", "list": [{"api_key": 1}]}`)
	testkit.Must(t, a.Approval(ctx, "refund", args, tool.Decision{Approved: true, By: "ann"}))
	_, err := a.Do(ctx, "refund", args, func() (any, error) { return nil, errors.New("marker-7716-secret is wrong") })
	if err == nil {
		t.Error("the error of the call is lost")
	}
	testkit.Must(t, a.Approval(ctx, "refund", args, tool.Decision{Reason: "too much"}))
	testkit.Must(t, a.Approval(ctx, "refund", args, tool.Decision{Err: errors.New("the caller left")}))
	var got []string
	for _, r := range records {
		if r.Call != records[0].Call || r.Call == "" || r.Digest != records[0].Digest || r.Time.IsZero() {
			t.Errorf("the record is %+v", r)
		}
		got = append(got, fmt.Sprint(r.Event, r.Decision, r.Status, r.Decider, r.Reason, r.Error))
		if r.Application+r.Flow+r.Step+r.Session+r.Principal+r.Tool+r.ModelCall != "shoptalkhelpsadarefundc1" || r.Row != 2 {
			t.Errorf("the record is %+v", r)
		}
	}
	want := []string{"approvalapprovedann", "call", "resulterror*** is wrong", "approvalrejectedtoo much", "approvalundecidedthe caller left"}
	if !slices.Equal(got, want) {
		t.Errorf("the records are %q, want %q", got, want)
	}
	if got, want := string(records[1].Arguments), `{"list":[{"api_key":"***"}],"note":"***","order":12345678901234567890,"password":"***"}`; got != want {
		t.Errorf("the arguments are %s, want %s", got, want)
	}
}

// TestAudit_Refuses checks what happens if an event cannot be recorded.
func TestAudit_Refuses(t *testing.T) {
	for event, want := range map[tool.AuditEvent]string{tool.AuditCall: "tool pay was not called: the audit log cannot be written: no space left on device",
		tool.AuditResult: "tool pay was called, but the audit log cannot be written: no space left on device"} {
		var records []tool.AuditRecord
		called := false
		_, err := auditOf(&records, event).Do(t.Context(), "pay", []byte("{}"), func() (any, error) { called = true; return 1, nil })
		if err == nil || err.Error() != want || called != (event == tool.AuditResult) {
			t.Errorf("%s: called %v: %v", event, called, err)
		}
	}
	var records []tool.AuditRecord
	if err := auditOf(&records, tool.AuditApproval).Approval(t.Context(), "pay", []byte("{}"), tool.Decision{Approved: true}); err == nil {
		t.Error("an approval that cannot be recorded is accepted")
	}
}

// TestAudit_Arguments has large arguments, and what a model wrote that is not JSON.
func TestAudit_Arguments(t *testing.T) {
	var records []tool.AuditRecord
	a := auditOf(&records, "")
	ok := func() (any, error) { return nil, nil }
	for _, args := range []string{`{"text": "` + strings.Repeat("x", 5000) + `"}`, `not JSON`} {
		_, err := a.Do(t.Context(), "t", []byte(args), ok)
		testkit.Must(t, err)
	}
	if large := records[0]; large.Arguments != nil || !strings.HasPrefix(large.Digest, "sha256:") {
		t.Errorf("large arguments are %s, digest %s", large.Arguments, large.Digest)
	}
	if got := string(records[2].Arguments); got != `"not JSON"` {
		t.Errorf("the arguments are %s", got)
	}
}

// TestAudit_Panic records the end of a call that panics.
func TestAudit_Panic(t *testing.T) {
	var records []tool.AuditRecord
	a := auditOf(&records, "")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		_, _ = a.Do(t.Context(), "t", nil, func() (any, error) { panic("bug") })
	}()
	if len(records) != 2 || records[1].Status != tool.AuditFailed {
		t.Errorf("the records are %+v", records)
	}
}

// TestAudit_None records nothing.
func TestAudit_None(t *testing.T) {
	var a *tool.Audit
	result, err := a.Do(t.Context(), "t", nil, func() (any, error) { return 7, nil })
	if result != 7 || err != nil || a.NewCall() != "" || a.Approval(t.Context(), "t", nil, tool.Decision{Approved: true}) != nil {
		t.Errorf("the result is %v, %v", result, err)
	}
}
