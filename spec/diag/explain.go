package diag

import (
	"fmt"
	"slices"
	"strings"
)

// ListRules returns a line for each rule: its code, severity and title.
func ListRules(rules []Rule) string {
	var b strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&b, "%s  %-7s  %s\n", r.Code, r.Severity, r.Title)
	}
	return b.String()
}

// FindRule returns the rule with a code, which may also be written as 202, qt202 and QT-202.
func FindRule(rules []Rule, code string) (Rule, error) {
	code = fullCode(code)
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.Code == code })
	if i >= 0 {
		return rules[i], nil
	}
	var codes []string
	for _, r := range rules {
		codes = append(codes, r.Code)
	}
	near := DidYouMean(code, codes)
	if near == "" {
		near = `; codes are QT and three digits, and "qtype explain" lists them`
	}
	return Rule{}, fmt.Errorf("no diagnostic has the code %q%s", code, near)
}

// IsCode reports whether a word is meant as a code: 202, QT202 or qtx.
func IsCode(word string) bool { return strings.HasPrefix(fullCode(word), "QT") }

// fullCode returns a code as it is declared.
func fullCode(code string) string {
	upper := strings.ToUpper(strings.TrimSpace(code))
	number := strings.TrimLeft(strings.TrimPrefix(upper, "QT"), "- ")
	if number != "" && strings.Trim(number, "0123456789") == "" {
		return fmt.Sprintf("QT%03s", number)
	}
	return upper
}

// Explain returns the description of a rule with its examples.
func (r Rule) Explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s\n\n%s\n", r.Code, r.Severity, r.Title, strings.TrimSpace(r.Doc))
	for _, example := range []struct{ name, text string }{{"Wrong", r.Wrong}, {"Right", r.Right}} {
		if text := strings.Trim(example.text, "\n"); text != "" {
			fmt.Fprintf(&b, "\n%s:\n\n    %s\n", example.name, strings.ReplaceAll(text, "\n", "\n    "))
		}
	}
	return b.String()
}
