package expression

import (
	"fmt"
	"strings"
)

// translateError replaces the terms of the library by those of the language, such
// as the names of Go types.
func translateError(message string) string {
	message, _, _ = strings.Cut(message, "\n")
	if strings.Contains(message, "integer divide by zero") {
		return "a number cannot be divided by 0"
	}
	if strings.Contains(message, "interface conversion") || strings.Contains(message, "reflect") || strings.Contains(message, "runtime error") {
		return "a value has the wrong type or is null"
	}
	if rest, found := strings.CutPrefix(message, "unexpected token "); found {
		what, value, hasValue := strings.Cut(strings.TrimSuffix(rest, ")"), "(")
		switch {
		case what == "EOF":
			return "unexpected end of the expression"
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
		// A run-time error such as int / <nil>.
		if words := strings.Fields(strings.ReplaceAll(operands, "interface {}", "any")); len(words) == 3 {
			return typeWords().Replace(fmt.Sprintf("%s is not defined for %s and %s", words[1], words[0], words[2]))
		}
	}
	message = strings.NewReplacer("invalid operation: ", "", " (mismatched types ", " is not defined for ", " (mismatched type ", " is not defined for ").Replace(message)
	if strings.Contains(message, " is not defined for ") {
		message = strings.TrimSuffix(message, ")")
	}
	return typeWords().Replace(message)
}

// typeWords replaces the names of Go types. The first match counts, so longer names
// precede their prefixes.
func typeWords() *strings.Replacer {
	return strings.NewReplacer(
		"map[string]interface {}", "a record", "map[string]any", "a record", "map[any]any", "a record", "map[string]string", "a record",
		"[]interface {}", "a list", "[]any", "a list", "[]string", "a list", "[]int", "a list", "[]uint8", "bytes",
		"interface {}", "any", "<nil>", "null", "nil", "null", "type expression.Message", "a ChatMessage", "expression.Message", "a ChatMessage",
		"time.Time", "a datetime", "time.Duration", "a duration",
		"float64", "float", "int64", "int", "string", "text", "boolean", "boolean", "bool", "boolean")
}
