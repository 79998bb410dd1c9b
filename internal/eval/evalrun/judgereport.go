package evalrun

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// JudgeReport is how a metric of judges agrees with people.
type JudgeReport struct {
	Metric     string        `json:"metric"`
	Data       string        `json:"data"`                 // the file with the results that people have labelled
	Rows       int           `json:"rows"`                 // of it
	Judges     []JudgeResult `json:"judges"`               // the verdict that counts first, then those of each of several models
	Warnings   []string      `json:"warnings,omitempty"`   // what makes the agreement uncertain
	Violations []string      `json:"violations,omitempty"` // why the judge is refused
}

// JudgeResult is the agreement of a verdict with people.
type JudgeResult struct {
	Judge       string                    `json:"judge"`                 // the id of the model; "all" for the verdict of several
	Errors      int                       `json:"errors"`                // rows without a verdict
	Ties        int                       `json:"ties"`                  // verdicts that the votes do not decide
	Accuracy    Interval                  `json:"accuracy"`              // the share of equal verdicts
	Kappa       Interval                  `json:"kappa"`                 // Cohen's; without a count if all verdicts are the same label
	Sensitivity *Interval                 `json:"sensitivity,omitempty"` // of two labels: the share that the judge passes of what people pass
	Specificity *Interval                 `json:"specificity,omitempty"` // of two labels: the share that the judge fails of what people fail
	Order       *Interval                 `json:"order,omitempty"`       // the share of verdicts that differ if the order of the labels, or of the answers, is reversed
	Repeat      *Interval                 `json:"repeat,omitempty"`      // the share that differs if the same is asked again
	First       *Interval                 `json:"first,omitempty"`       // of a preference that changes with the order: the share in which the first answer wins
	Length      *Bias                     `json:"length,omitempty"`      // how much more than people the judge likes the longer half of the outputs
	Verdicts    map[string]map[string]int `json:"verdicts"`              // counts by the label of people, then by that of the judge
}

// Text writes the report for a terminal.
func (r *JudgeReport) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "metric %s · %s from %s\n\n", terminal.Clean(r.Metric), textfmt.Count(r.Rows, "row"), terminal.Clean(r.Data))
	lines := [][]string{{"judge"}, {"accuracy"}, {"kappa"}, {"passes what people pass"}, {"fails what people fail"}, {"changes with the order"}, {"changes if asked again"}, {"the first answer wins"}, {"longer outputs"}, {"ties"}}
	show := func(i *Interval) string {
		if i == nil || i.Count == 0 {
			return ""
		}
		return fmt.Sprintf("%.3f (%.3f to %.3f)", i.Value, i.Low, i.High)
	}
	for _, j := range r.Judges {
		length := ""
		if j.Length != nil {
			length = fmt.Sprintf("%+.3f (%.3f to %.3f), p = %.2f", j.Length.Difference, j.Length.Low, j.Length.High, j.Length.P)
		}
		for i, cell := range []string{j.Judge, show(&j.Accuracy), show(&j.Kappa), show(j.Sensitivity), show(j.Specificity), show(j.Order), show(j.Repeat), show(j.First), length, fmt.Sprint(j.Ties)} {
			lines[i] = append(lines[i], cell)
		}
	}
	writeColumns(&b, slices.DeleteFunc(lines, func(line []string) bool {
		return !slices.ContainsFunc(line[1:], func(cell string) bool { return cell != "" && cell != "0" })
	}))
	for _, line := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", terminal.Clean(line))
	}
	for _, line := range r.Violations {
		fmt.Fprintf(&b, "refused: %s\n", terminal.Clean(line))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
