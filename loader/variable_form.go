package loader

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// badVariable is a ${ that does not start ${NAME} or ${NAME:-default}, or one that other programs read otherwise.
type badVariable struct {
	written string // as far as it goes
	message string
	hint    string
	literal bool // QType (Python) has a meaning for it: a warning
}

// shellForm matches the content of braces in shells and Compose: a name, an operator and its operand.
var shellForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([A-Za-z_]\w*)(:?)([-?+=])(.*)$`) })

// maxBadVariables is the largest number of variables of one text that are reported.
const maxBadVariables = 10

// badVariables returns the variables of a text that expand does not read, or reads differently
// from Compose; at most maxBadVariables.
func badVariables(text string) []badVariable {
	if !strings.Contains(text, "${") {
		return nil
	}
	var found []badVariable
	scan := envScanner{text: text}
	done := 0
	for len(found) < maxBadVariables {
		v, more := scan.next()
		end := len(text)
		if more {
			end = v.Start
		}
		for i := strings.Index(text[done:end], "${"); i >= 0 && len(found) < maxBadVariables; i = strings.Index(text[done:end], "${") {
			found = append(found, explainVariable(variableText(text[done+i:])))
			done += i + len("${")
		}
		if !more {
			return found
		}
		switch written := text[v.Start:v.End]; {
		case strings.Contains(v.Name, "${"):
			found = append(found, explainVariable(variableText(text[v.Start:])))
		case strings.Contains(v.Default, "${"):
			found = append(found, badVariable{written: written, message: "a default cannot contain another variable", hint: "the first } ends it: write a text"})
		case strings.HasSuffix(text[:v.Start], "$"):
			found = append(found, badVariable{written: "$" + written, message: "$$ is no escape here: this is a $ and the value of " + v.Name, hint: "write ${DOLLAR:-$}{" + v.Name + "} for the text ${" + v.Name + "}", literal: true})
		}
		done = v.End
	}
	return found
}

// variableText returns the text from a ${ to its brace, or to the end of the name if the line has no brace for it.
func variableText(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	inner := line[len("${"):]
	if i := strings.IndexAny(inner, "}$"); i >= 0 && inner[i] == '}' {
		return line[:len("${")+i+1]
	}
	return line[:len("${")+len(inner)-len(strings.TrimLeft(inner, "_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"))]
}

// explainVariable returns the fault of a form and the right one. Defaults may be secrets: hints omit them.
func explainVariable(written string) badVariable {
	body, closed := strings.CutSuffix(strings.TrimPrefix(written, "${"), "}")
	bad := badVariable{written: written, hint: "write ${NAME}, or ${NAME:-text} with a default"}
	m := shellForm().FindStringSubmatch(body)
	name, _, _ := strings.Cut(body, ":")
	switch {
	case !closed:
		bad.message = "this variable is not closed"
		if body != "" {
			bad.hint = "write ${" + body + "}"
		}
	case m != nil && m[3] == "?":
		bad.message, bad.hint = "${NAME:?text} is a form of other programs", "write ${"+m[1]+"}: a run refuses a variable without a value"
	case m != nil && m[3] == "=":
		bad.message, bad.hint = "${NAME:=text} is a form of other programs", "write ${"+m[1]+":-…}"
	case m != nil && m[3] == "+":
		bad.message = "${NAME:+text} is a form of other programs"
	case strings.EqualFold(name, "env"):
		name, rest, hasDefault := strings.Cut(body[len("env:"):], ":")
		bad.message, bad.hint = "${env:NAME} is a form of other programs", "write ${"+name+"}"
		if hasDefault && rest != "" {
			bad.hint = "write ${" + name + ":-…}"
		}
	case name == "":
		bad.message, bad.literal = "this names no variable, and stays as it is written", true
	default:
		bad.message, bad.literal = "a default begins with :-, so this stays as it is written", true
		bad.hint = "write ${" + name + ":-…}"
	}
	return bad
}

// otherForm returns the likely form of a variable that is not set, if its name has an operator of a
// shell; empty if it has none.
func otherForm(name string) string {
	m := shellForm().FindStringSubmatch(name)
	switch {
	case m == nil:
		return ""
	case m[3] == "-" || m[3] == "=":
		return fmt.Sprintf("; ${%s:-%s} is %[1]s with the default %[2]s", m[1], m[4])
	case m[3] == "?":
		return fmt.Sprintf("; the variable %s is ${%[1]s}", m[1])
	}
	return ""
}

// reportForms reports variables of other forms in the text of a scalar, which is at [start, end) of the file,
// and whether one of them is an error.
func (b *builder) reportForms(made *node, start, end int) (wrong bool) {
	for _, bad := range badVariables(made.text) {
		span := made.span
		if found := folded(bad.written).FindIndex(b.file.Text[start:end]); found != nil {
			span = source.Span{File: b.file, Start: b.pos.at(start + found[0]), End: b.pos.at(start + found[1])}
			start += found[1]
		}
		found := ruleVariable.At(span, "%s", bad.message).WithHint("%s", bad.hint)
		if bad.literal {
			found = found.WithSeverity(diag.Warning)
		}
		wrong = wrong || !bad.literal
		b.diags.add(found)
	}
	return wrong
}

// folded returns a pattern for a text of a scalar as it is written: white space may contain the ends of lines.
func folded(text string) *regexp.Regexp {
	var words []string
	for word := range strings.FieldsSeq(text) {
		words = append(words, regexp.QuoteMeta(word))
	}
	return regexp.MustCompile(strings.Join(words, `[\\\s]+`))
}
