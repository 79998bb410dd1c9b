package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/durable"
)

// TestTemporal_Answer: qtype runs show names what rows wait for, qtype runs answer takes the answers,
// and an answer to no request or a second one to the same is an error.
func TestTemporal_Answer(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../examples/approval/app.qtype.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, string(document), "order,amount\n8812,40\n8813,50\n")
	c.worker()
	result := c.begin("run", "app.qtype.yaml", "-f", "complaint", "-I", "in.csv", "-o", "out.jsonl", "--engine", "temporal")
	id, shown := c.awaitRequests(2, result)
	if got := c.awaitRun(durable.WaitingStatus); got.ID != id || got.Flow != "complaint" {
		t.Errorf("a run that waits is listed as %+v", got)
	}
	note := strings.Repeat("fine ", 300) // more than the workflow keeps
	answers := []string{"runs", "answer", id}
	for number := 1; number <= 2; number++ {
		_, request, _ := strings.Cut(shown, fmt.Sprintf("  %d: row ", number))
		request, _, _ = strings.Cut(request, "\n")
		switch {
		case strings.Contains(request, `step ask needs the result of decide {"order":8812,`):
			answers = append(answers, fmt.Sprintf(`%d={"pay": true, "note": %q}`, number, note))
		case strings.Contains(request, `step ask needs the result of decide {"order":8813,`):
			answers = append(answers, fmt.Sprintf(`%d={"pay": false}`, number))
		default:
			t.Fatalf("request %d: %s", number, shown)
		}
	}
	if status, _, errs := c.qtype("runs", "answer", id, "3=yes"); status != 1 || !strings.Contains(errs, "the run does not wait for an answer to request 3") {
		t.Errorf("answer to no request: %d\n%s", status, errs)
	}
	if status, _, errs := c.qtype(answers[:4]...); status != 0 || !strings.Contains(errs, "answered 1 request") {
		t.Errorf("answer: %d\n%s", status, errs)
	}
	if status, _, errs := c.qtype(answers[:4]...); status != 1 || !strings.Contains(errs, "the run does not wait for an answer to request 1") {
		t.Errorf("second answer: %d\n%s", status, errs)
	}
	if status, _, errs := c.qtype("runs", "answer", id, answers[4]); status != 0 {
		t.Errorf("answer: %d\n%s", status, errs)
	}
	if got := <-result; !strings.HasPrefix(got, "0\n") {
		t.Fatal(got)
	}
	c.awaitRun("completed")
	c.save("history_answers.json")
	want := fmt.Sprintf(`{"row":1,"order":8812,"pay":true,"note":%q,"error":null}
{"row":2,"order":8813,"pay":false,"note":null,"error":null}
`, note)
	if diff := cmp.Diff(want, c.read("out.jsonl")); diff != "" {
		t.Error(diff)
	}
}

// awaitRequests returns the id of the only run, and what qtype runs show writes once it waits for
// n answers. A run that ends before fails the test.
func (c *cluster) awaitRequests(n int, result <-chan string) (id, shown string) {
	c.t.Helper()
	for {
		select {
		case got := <-result:
			c.t.Fatalf("the run has ended: %s; %s", got, shown)
		case <-time.After(100 * time.Millisecond): // it polls
		}
		runs := c.runs()
		if len(runs) == 0 {
			continue
		}
		id = runs[0].ID
		if _, shown, _ = c.qtype("runs", "show", id); strings.Contains(shown, fmt.Sprintf("  %d: row ", n)) {
			return id, shown
		}
	}
}

// TestTemporal_NewDocument: an open run moves to the workers of another version of its document, with its finished rows. One
// whose flow no worker has is listed as such, and can be canceled.
func TestTemporal_NewDocument(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../examples/approval/app.qtype.yaml")
	if err != nil {
		t.Fatal(err)
	}
	former := string(document)
	c := newCluster(t, former, "order,amount\n8812,40\n8813,50\n")
	c.worker()
	run := []string{"run", "app.qtype.yaml", "-f", "complaint", "-I", "in.csv", "--engine", "temporal", "-o"}
	result := c.begin(append(run, "out.jsonl")...)
	id, shown := c.awaitRequests(2, result)
	number := "1"
	if strings.Contains(shown, `  2: row 1,`) {
		number = "2"
	}
	if status, _, errs := c.qtype("runs", "answer", id, number+`={"pay": true, "note": "fine"}`); status != 0 {
		t.Fatalf("answer: %d\n%s", status, errs)
	}
	for !strings.Contains(shown, " 1 row, 0 failed") {
		time.Sleep(100 * time.Millisecond) // it polls
		_, shown, _ = c.qtype("runs", "show", id)
	}
	c.write("other.qtype.yaml", strings.Replace(former, "id: ask,", "id: enquire,", 1))
	if status, _, errs := c.qtype("runs", "retry", id, "--with", "other.qtype.yaml"); status != 1 || !strings.Contains(errs, "--with: finished rows could have other results") {
		t.Errorf("another meaning: %d\n%s", status, errs)
	}
	c.write("app.qtype.yaml", strings.Replace(former, "  - id: complaint\n", "  - id: complaint\n    description: Pays back.\n", 1))
	if status, _, errs := c.qtype("runs", "retry", id, "--with", "app.qtype.yaml"); status != 0 {
		t.Fatalf("retry: %d\n%s", status, errs)
	}
	if got := <-result; !strings.HasPrefix(got, "1\n") || !strings.Contains(got, "--resume") {
		t.Errorf("the run of the former document: %s", got)
	}
	if _, shown, _ = c.qtype("runs", "show", id); !strings.Contains(shown, "unserved") || !strings.Contains(shown, "no worker has its flow: task queue qtype-") {
		t.Errorf("shown: %s", shown)
	}
	c.awaitRun(durable.UnservedStatus)
	c.worker()
	result = c.begin(append(run, "out.jsonl", "--resume")...)
	id, shown = c.awaitRequests(3-int(number[0]-'0'), result) // the request that is left has its number
	number = fmt.Sprint(3 - int(number[0]-'0'))
	if status, _, errs := c.qtype("runs", "answer", id, number+`={"pay": false}`); status != 0 {
		t.Errorf("answer: %d\n%s%s", status, errs, shown)
	}
	if got := <-result; !strings.HasPrefix(got, "0\n") {
		t.Fatal(got)
	}
	want := `{"row":1,"order":8812,"pay":true,"note":"fine","error":null}
{"row":2,"order":8813,"pay":false,"note":null,"error":null}
`
	if diff := cmp.Diff(want, c.read("out.jsonl")); diff != "" {
		t.Error(diff)
	}
	c.write("app.qtype.yaml", strings.Replace(former, "id: ask,", "id: enquire,", 1))
	result = c.begin(append(run, "third.jsonl")...)
	lost := c.awaitRun(durable.UnservedStatus)
	if status, _, errs := c.qtype("runs", "cancel", lost.ID); status != 0 {
		t.Errorf("cancel: %d\n%s", status, errs)
	}
	if got := <-result; !strings.HasPrefix(got, "1\n") {
		t.Error(got)
	}
	c.awaitRun("terminated")
}

// TestTemporal_AnswerBatches: a row behind a batch step waits for an answer, too. It is the answer of that row only.
func TestTemporal_AnswerBatches(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../examples/approval/app.qtype.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(document), "      - {type: InvokeTool, id: ask,",
		"      - {type: Collect, id: single, inputs: [order], outputs: [orders], batch_config: {batch_size: 1}}\n      - {type: InvokeTool, id: ask,", 1)
	text = strings.Replace(text, "    inputs: [order, amount]\n    outputs: [order, pay, note]\n", "    inputs: [order, amount]\n    outputs: [orders, pay, note]\n", 1)
	text = strings.Replace(text, "      - {id: note, type: text?}\n", "      - {id: note, type: text?}\n      - {id: orders, type: 'list[int]'}\n", 1)
	c := newCluster(t, text, "order,amount\n8812,40\n8813,50\n")
	c.worker()
	result := c.begin("run", "app.qtype.yaml", "-f", "complaint", "-I", "in.csv", "-o", "out.jsonl", "--engine", "temporal")
	for number, order := range []string{"8812", "8813"} {
		id, shown := c.awaitRequests(number+1, result)
		if !strings.Contains(shown, `step ask needs the result of decide {"order":`+order) {
			t.Fatalf("request %d: %s", number+1, shown)
		}
		if status, _, errs := c.qtype("runs", "answer", id, fmt.Sprintf(`%d={"pay": %t}`, number+1, number == 0)); status != 0 {
			t.Fatalf("answer: %d\n%s", status, errs)
		}
	}
	if got := <-result; !strings.HasPrefix(got, "0\n") {
		t.Fatal(got)
	}
	want := `{"row":1,"orders":[8812],"pay":true,"note":null,"error":null}
{"row":2,"orders":[8813],"pay":false,"note":null,"error":null}
`
	if diff := cmp.Diff(want, c.read("out.jsonl")); diff != "" {
		t.Error(diff)
	}
}
