package expression

import (
	"fmt"
	"strings"
)

// translateError puts a message of the library into the language's terms: no name
// of a Go type reaches a user.
func translateError(message string) string {
	message, _, _ = strings.Cut(message, "\n")
	if strings.Contains(message, "interface conversion") || strings.Contains(message, "reflect") || strings.Contains(message, "runtime error") {
		return "a value is of the wrong kind, or null"
	}
	if rest, found := strings.CutPrefix(message, "unexpected token "); found {
		what, value, hasValue := strings.Cut(strings.TrimSuffix(rest, ")"), "(")
		switch {
		case what == "EOF":
			return "something is missing at its end"
		case hasValue:
			return "unexpected " + value
		}
	}
	if field, found := strings.CutPrefix(message, "unknown field "); found {
		return fmt.Sprintf("there is no field %q", field)
	}
	if field, of, found := strings.Cut(strings.TrimPrefix(message, "cannot fetch "), " from "); found && strings.HasPrefix(message, "cannot fetch ") {
		return fmt.Sprintf("there is no field %q in %s", field, translateError(of))
	}
	if operands, found := strings.CutPrefix(message, "invalid operation: "); found {
		// At run time: int / <nil>.
		if words := strings.Fields(strings.ReplaceAll(operands, "interface {}", "any")); len(words) == 3 {
			return typeWords().Replace(fmt.Sprintf("%s does not go with %s and %s", words[1], words[0], words[2]))
		}
	}
	message = strings.NewReplacer("invalid operation: ", "", " (mismatched types ", " does not go with ", " (mismatched type ", " does not go with ").Replace(message)
	if strings.Contains(message, " does not go with ") {
		message = strings.TrimSuffix(message, ")")
	}
	return typeWords().Replace(message)
}

// typeWords replaces the names of Go types. Of several that match at one place
// the first counts: longer names stand before those that they begin with.
func typeWords() *strings.Replacer {
	return strings.NewReplacer(
		"map[string]interface {}", "a record", "map[string]any", "a record", "map[any]any", "a record", "map[string]string", "a record",
		"[]interface {}", "a list", "[]any", "a list", "[]string", "a list", "[]int", "a list", "[]uint8", "bytes",
		"interface {}", "any", "<nil>", "null", "nil", "null", "type expression.Message", "a ChatMessage", "expression.Message", "a ChatMessage",
		"time.Time", "a datetime", "time.Duration", "a duration",
		"float64", "float", "int64", "int", "string", "text", "boolean", "boolean", "bool", "boolean")
}
