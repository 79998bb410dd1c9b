package estimate

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// Limits are the most that a run may cost.
type Limits struct {
	Expected *float64 // of the expected cost; nil for no limit
	Worst    *float64 // of the worst case; nil for no limit
}

// Exceeds returns an error if the estimate is above a limit, or cannot be compared with it.
func (r *Report) Exceeds(l Limits) error {
	limited, worstLimited := l.Expected != nil, l.Worst != nil
	switch {
	case r.Failed == r.Sample:
		return errors.New("no row could be estimated: " + r.Reason)
	case limited && r.Failed > 0:
		return fmt.Errorf("--limit: %s could not be estimated: %s", textfmt.Count(r.Failed, "row"), r.Reason)
	case limited && len(r.Unpriced) > 0:
		return fmt.Errorf("--limit: model %s has no prices", textfmt.List(r.Unpriced))
	case limited && r.OverBudget != "":
		return fmt.Errorf("--limit: the budget of flow %s ends the run: %s", r.Flow, r.OverBudget)
	case limited && r.money() > *l.Expected:
		return fmt.Errorf("the expected cost %.6g is above the limit %.6g", r.money(), *l.Expected)
	case worstLimited && !r.Worst.Known:
		return fmt.Errorf("the worst case is not limited: %s", strings.Join(r.Worst.Open, "; "))
	case worstLimited && r.Worst.Money > *l.Worst:
		return fmt.Errorf("the worst case %.6g is above the limit %.6g", r.Worst.Money, *l.Worst)
	}
	return nil
}

// money returns the expected cost, that of batches if calls are made in them.
func (r *Report) money() float64 {
	if r.Batch != nil {
		return r.Batch.Money
	}
	return r.Expected.Money
}

// writeBatch writes what batches change.
func (r *Report) writeBatch(b *strings.Builder) {
	if r.Batch == nil {
		return
	}
	if r.Batch.Flex {
		fmt.Fprintf(b, "by the tier flex: %.4f instead of %.4f\n", r.Batch.Money, r.Expected.Money)
	} else {
		how := "in batches"
		if r.Batch.Window != "" {
			how = "in the background, " + r.Batch.Window
		}
		fmt.Fprintf(b, "%s: %.4f instead of %.4f, about %s\n", how, r.Batch.Money, r.Expected.Money, textfmt.Count(r.Batch.Waves, "wave"))
	}
	if len(r.Batch.AtOnce) > 0 {
		fmt.Fprintf(b, "calls of %s are made at once, at the normal price\n", terminal.Clean(textfmt.List(r.Batch.AtOnce)))
	}
	for _, note := range r.Batch.Notes {
		fmt.Fprintf(b, "note: %s\n", terminal.Clean(note))
	}
}

// JSON writes the report as an object.
func (r *Report) JSON(w io.Writer) error {
	return textfmt.WriteJSON(w, r)
}

// Text writes the report for a terminal.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s · flow %s · %s, estimated from %d\n\n", terminal.Clean(r.App), terminal.Clean(r.Flow), textfmt.Count(r.Rows, "row"), r.Sample-r.Failed)
	fmt.Fprintf(&b, "%-20s %12s %14s %14s %12s\n", "model", "calls", "tokens in", "tokens out", "cost")
	line := func(name string, calls, input, output float64, cost string) {
		fmt.Fprintf(&b, "%-20s %12.0f %14.0f %14.0f %12s\n", terminal.Clean(name), calls, input, output, cost)
	}
	for _, m := range r.Models {
		cost := fmt.Sprintf("%.4f", m.Money)
		if !m.Priced {
			cost = "no prices"
		}
		line(m.ID, m.Calls, m.Input, m.Output, cost)
	}
	if r.Expected != nil {
		line("expected", r.Expected.Calls, r.Expected.Input, r.Expected.Output, fmt.Sprintf("%.4f", r.Expected.Money))
	} else {
		b.WriteString("no cost is expected: all rows of the sample failed\n")
	}
	b.WriteByte('\n')
	r.writeBatch(&b)
	r.writePrices(&b)
	if r.Worst.Known {
		fmt.Fprintf(&b, "worst case: %.4f, limited by the %s\n", r.Worst.Money, map[string]string{"windows": "context windows", "budget": "budget of the flow"}[r.Worst.By])
	} else {
		fmt.Fprintf(&b, "worst case: not limited: %s\n", terminal.Clean(strings.Join(r.Worst.Open, "; ")))
	}
	if r.OverBudget != "" {
		fmt.Fprintf(&b, "the budget of the flow ends the run: %s\n", r.OverBudget)
	}
	if r.Failed > 0 {
		fmt.Fprintf(&b, "%s of the sample failed: %s\n", textfmt.Count(r.Failed, "row"), terminal.Clean(r.Reason))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writePrices explains where the prices of the models are from.
func (r *Report) writePrices(b *strings.Builder) {
	var declared, builtin, user []string
	for _, m := range r.Models {
		switch m.Prices {
		case DeclaredPrices:
			declared = append(declared, m.ID)
		case BuiltinPrices:
			builtin = append(builtin, m.ID)
		case UserPrices:
			user = append(user, m.ID)
		}
	}
	for _, l := range []struct {
		format string
		models []string
	}{
		{"prices of %s: those of the document (key prices)\n", declared},
		{"prices of %s: list prices of " + catalogue.Date + " in US dollars, built into qtype; set prices in the model for others\n", builtin},
		{"prices of %s: those of models.yaml, in US dollars\n", user},
		{"no prices of %s: not part of the cost; set prices in the model, or in models.yaml\n", r.Unpriced},
		{"calls of %s are only part of the worst case: searches find nothing\n", r.Rankers},
	} {
		if len(l.models) > 0 {
			fmt.Fprintf(b, l.format, terminal.Clean(textfmt.List(l.models)))
		}
	}
}
