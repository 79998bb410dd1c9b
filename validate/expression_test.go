package validate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate"
)

// documentWithLoop returns a document with one expression, the condition of a Loop.
func documentWithLoop(until string) string {
	return fmt.Sprintf(`id: app
types: [{id: Order, properties: {number: int, paid: boolean, items: "list[text]", notes: "list[list[text]]", before: "Order?"}}]
flows:
  - id: again
    variables: [{id: n, type: int}]
    inputs: [n]
    outputs: [n]
    steps: [{type: Echo, id: pass, inputs: [n], outputs: [n]}]
  - id: main
    variables:
      - {id: n, type: int}
      - {id: x, type: float}
      - {id: name, type: text}
      - {id: note, type: "text?"}
      - {id: done, type: boolean}
      - {id: order, type: Order}
      - {id: orders, type: "list[Order]"}
      - {id: when, type: datetime}
      - {id: question, type: ChatMessage}
    inputs: [n, x, name, note, done, order, orders, when, question]
    outputs: [n]
    steps: [{type: Loop, id: loop, flow: again, max_iterations: 3, until: '%s', inputs: [n], outputs: [n]}]
`, strings.ReplaceAll(until, "'", "''"))
}

// TestExpression_Types checks expressions with their diagnostics: the code, the offset in
// the expression (-1 for the whole text) and a part of the message. A value whose type
// is known only at run time is valid.
func TestExpression_Types(t *testing.T) {
	for until, want := range map[string]string{
		`done`:                               "",
		`n > 3 and x < n`:                    "",
		`not done or name in ["a", "b"]`:     "",
		`order.paid && order.number == n`:    "",
		`order.before.before.number > 3`:     "",
		`any(orders, .number > 3)`:           "",
		`len(order.items) + n > 3`:           "",
		`order.notes[0][0] == "x"`:           "",
		`note == nil or note contains "x"`:   "",
		`when > now()`:                       "",
		`question.text matches "(?i)bye"`:    "",
		`let twice = n * 2; twice > x`:       "",
		`(name | lower()) == "x"`:            "",
		`n % 2 == 0 ? done : not done`:       "",
		`n = 3`:                              `QT423:2 unexpected "="`,
		`name > 3`:                           `QT423:5 > is not defined for text and int`,
		`done + 1 > 3`:                       `QT423:5 + is not defined for boolean and int`,
		`order.price > 3`:                    `QT423:6 there is no field "price"`,
		`len(n) > 3`:                         `QT423:0 invalid argument for len (type int)`,
		`lower(name, name)`:                  `QT423:0 too many arguments to call lower`,
		`any(orders, .colour == "x")`:        `QT423:13 there is no field "colour"`,
		`naem == "x"`:                        `QT425:0 names "naem"`,
		`done and nmae == "x" and odner`:     `QT425:9 names "nmae"; QT425:25 names "odner"`,
		`name`:                               `QT424:-1 is text, not true or false`,
		`[n]`:                                `QT424:-1 is a list`,
		`(`:                                  `QT423:0 unexpected end of the expression`,
		`"é" + name > 3 or naem`:             `QT425:18 names "naem"; QT423:11 > is not defined for text and int`,
		strings.Repeat("(", 5000):            `QT423:-1 at most 4000 characters`,
		strings.Repeat("not ", 900) + "n":    `QT423:3592 not is not defined for int`,
		strings.Repeat("n+", 1900) + "n > 3": "",
	} {
		t.Run(fmt.Sprintf("%.60s", until), func(t *testing.T) {
			compareDiagnostics(t, expressionDiagnostics(t, until), want)
		})
	}
}

// expressionDiagnostics returns the diagnostics of an expression, as "code:offset message".
func expressionDiagnostics(t *testing.T, until string) []string {
	t.Helper()
	_, found := checked(t, documentWithLoop(until))
	before, _, _ := strings.Cut(documentWithLoop(until), "until: '")
	start := len(before[strings.LastIndexByte(before, '\n')+1:]) + len("until: '") + 1
	var got []string
	for _, d := range found {
		if d.Code >= "QT423" && d.Code <= "QT426" {
			got = append(got, fmt.Sprintf("%s:%d %s", d.Code, d.Span.Start.Column-start, d.Message))
		}
	}
	slices.Sort(got)
	return got
}

// compareDiagnostics compares diagnostics with "code:offset part of the message", separated by "; ".
func compareDiagnostics(t *testing.T, got []string, want string) {
	t.Helper()
	wants := strings.Split(want, "; ")
	if want == "" {
		wants = nil
	}
	slices.Sort(wants)
	if len(got) != len(wants) {
		t.Fatalf("got %q, want %q", got, wants)
	}
	for i, w := range wants {
		place, message, _ := strings.Cut(w, " ")
		if !strings.HasPrefix(got[i], place+" ") || !strings.Contains(got[i], message) {
			t.Errorf("got %q, want %q", got[i], w)
		}
	}
}

// TestExpression_VariablesAreInputs checks the inputs that an expression adds to its step.
func TestExpression_VariablesAreInputs(t *testing.T) {
	loaded, found := checked(t, documentWithLoop(`x > 3 and x < 5 and name == "a" and n > 1`))
	if found.Errors() > 0 {
		t.Fatal(found)
	}
	loop := loaded.Document.Application.Flows[1].Steps[0].Step.(*spec.Loop)
	var reads, derived []string
	for _, v := range loop.Until.Vars {
		reads = append(reads, v.To.ID)
	}
	for _, r := range loop.DerivedInputs {
		derived = append(derived, r.To.ID)
	}
	if fmt.Sprint(reads, derived) != "[x name n] [x name]" {
		t.Errorf("reads %v, derived %v", reads, derived)
	}
	// Checking again adds nothing.
	if validate.Check(loaded.Document); len(loop.DerivedInputs) != 2 {
		t.Errorf("derived twice: %v", loop.DerivedInputs)
	}
}

func FuzzExpression(f *testing.F) {
	for _, s := range []string{"n > 3", `any(orders, # .number > 1)`, `let a = 1; a`, `name[1:2]`, `{"a": 1}.a`, `n ?? 3`, `1..n`, `reduce([1], #acc + #, 0)`, "`x`", `'é' matches "("`, `if n > 1 {1} else {2}`, "\x00$D\n", "${\nn }"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, until string) {
		loaded, _ := loader.LoadBytes(context.Background(), "app.qtype.yaml", []byte(documentWithLoop("true")), emptyEnvironment())
		loop := loaded.Document.Application.Flows[1].Steps[0].Step.(*spec.Loop)
		loop.Until.Text = until
		for _, d := range validate.Check(loaded.Document) {
			if d.Message == "" || strings.ContainsAny(d.Message, "\n") || d.Severity == diag.Error && d.Code < "QT3" {
				t.Errorf("%q: %#v", until, d)
			}
		}
	})
}
