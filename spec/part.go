package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/parts"
)

// PartRule is a rule of a step or a tool of another module, for what its tags cannot express. Its code is the type, a slash and Code.
type PartRule struct {
	Code   string        // a word of lower-case letters and hyphens
	Title  string        // what is wrong, in a few fixed words
	Doc    string        // why it is wrong and what to do, a few sentences
	Key    string        // the key that a diagnostic points at
	Broken func() string // returns what is wrong with this declaration, with its values; empty if nothing is
}

// Ruled is implemented by steps and tools of other modules that have rules. They depend on the values of the declaration and what it
// refers to, never on files, servers or the environment.
type Ruled interface {
	Node
	// Rules returns the rules, the same for each value of the type.
	Rules() []PartRule
}

// CallLimit returns how often a step of another module calls its models for a row at most: the sum of the tags `calls` of its
// references to models, each of which is a number or the key that has it.
func CallLimit(s Step) int64 {
	var sum int64
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag.Get("calls")
		n, err := strconv.ParseInt(tag, 10, 64)
		if field := fieldByKey(v, tag); err != nil && field.IsValid() && field.CanInt() {
			n = field.Int()
		}
		sum += n
	}
	return sum
}

// fieldByKey returns the field of a struct with a key; the zero value without one.
func fieldByKey(v reflect.Value, key string) reflect.Value {
	for i := range v.NumField() {
		if key != "" && v.Type().Field(i).Tag.Get("yaml") == key {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

// checkPart returns an error for what a struct of another module declares and the language does not support.
func checkPart(n Node) error {
	t := reflect.TypeOf(n).Elem()
	if err := checkDocs(t); err != nil {
		return err
	}
	if err := checkKeys(t); err != nil {
		return err
	}
	if s, isStep := n.(Step); isStep {
		if err := checkSignatures(s); err != nil {
			return err
		}
		switch rows := RowsOf(s); rows {
		case RowsOne, RowsMany:
		case RowsBatch:
			return fmt.Errorf("a step of another module cannot work on groups of rows")
		default:
			return fmt.Errorf("the tag rows of the base cannot be %q; it is many, or there is none", rows)
		}
		if err := checkCalls(reflect.ValueOf(n).Elem()); err != nil {
			return err
		}
	}
	var codes []string
	if r, ok := n.(Ruled); ok {
		var rules []PartRule
		if err := parts.Guard("Rules", func() error { rules = r.Rules(); return nil }); err != nil {
			return err
		}
		for _, rule := range rules {
			if rule.Code == "" || strings.Trim(rule.Code, "abcdefghijklmnopqrstuvwxyz-") != "" || slices.Contains(codes, rule.Code) || rule.Title == "" || rule.Doc == "" || rule.Broken == nil {
				return fmt.Errorf("the rule %q has no new code of letters and hyphens, or no title, description or function", rule.Code)
			}
			if !slices.Contains(keysOf(t), rule.Key) {
				return fmt.Errorf("the rule %q is about the key %q, which the type does not have", rule.Code, rule.Key)
			}
			codes = append(codes, rule.Code)
		}
	}
	return nil
}

// checkCalls returns an error for a reference to a model that does not declare how often the step calls it.
func checkCalls(v reflect.Value) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		ref, ok := reflect.New(f.Type).Interface().(Reference)
		if !ok {
			continue
		}
		switch role := roles()[TargetType(ref)]; role {
		case RoleChatModel:
			tag := f.Tag.Get("calls")
			if _, err := strconv.Atoi(tag); err != nil && (!fieldByKey(v, tag).IsValid() || !fieldByKey(v, tag).CanInt()) {
				return fmt.Errorf("the key %s needs the tag calls: the largest number of calls for a row, or the key of an integer that has it", f.Tag.Get("yaml"))
			}
		case RoleConversation, RoleVariable:
		default:
			return fmt.Errorf("the key %s refers to something with the role %s, which a step of another module cannot use", f.Tag.Get("yaml"), role)
		}
	}
	return nil
}
