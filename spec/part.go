package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

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

// checkKeys returns an error for a key of a struct of another module that documents could not set.
func checkKeys(t reflect.Type) error {
	for i := range t.NumField() {
		f := t.Field(i)
		key, isKey := f.Tag.Lookup("yaml")
		var problem string
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Pointer && isOfSpec(f.Type.Elem()):
			return fmt.Errorf("the base %s is not embedded as a struct", f.Name)
		case !isKey || key == "-":
			continue
		case !f.IsExported():
			problem = "is of a field that is not exported"
		case key == "type" || count(keysOf(t), key) > 1:
			problem = "exists twice: the embedded base has it, or another field"
		case !isReadable(f.Type):
			problem = "has the type " + f.Type.String() + ", which documents cannot set; use string, int, float64, bool, a type of package spec, or a list or map of them"
		default:
			problem = problemOfTags(f)
		}
		if problem != "" {
			return fmt.Errorf("the key %s %s", key, problem)
		}
	}
	return nil
}

// keysOf lists the keys of a struct and of what it embeds.
func keysOf(t reflect.Type) (keys []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if key := f.Tag.Get("yaml"); key != "" && key != "-" {
			keys = append(keys, key)
		} else if f.Anonymous && f.Type.Kind() == reflect.Struct {
			without := strings.Split(f.Tag.Get("without"), ",")
			keys = append(keys, slices.DeleteFunc(keysOf(f.Type), func(key string) bool { return slices.Contains(without, key) })...)
		}
	}
	return keys
}

func count(list []string, item string) (n int) {
	for _, s := range list {
		if s == item {
			n++
		}
	}
	return n
}

// isReadable reports whether a document can set a field of a type.
func isReadable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Int, reflect.Float64, reflect.Bool:
		return true
	case reflect.Pointer, reflect.Slice:
		return isOfSpec(t) || isReadable(t.Elem())
	case reflect.Map:
		return t.Key().Kind() == reflect.String && (t.Elem() == reflect.TypeFor[any]() || isReadable(t.Elem()))
	}
	return isOfSpec(t)
}

func isOfSpec(t reflect.Type) bool { return t.PkgPath() == reflect.TypeFor[Variable]().PkgPath() }

// problemOfTags says what is wrong with the tags default and validate of a field, empty if nothing is.
func problemOfTags(f reflect.StructField) string {
	t := f.Type
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if text, there := f.Tag.Lookup("default"); there && !isDefault(t, text) {
		return fmt.Sprintf("cannot have the default %q", text)
	}
	for rule := range strings.SplitSeq(f.Tag.Get("validate"), ",") {
		if !isRule(t, rule) {
			return fmt.Sprintf("cannot have the rule %q in the tag validate", rule)
		}
	}
	return ""
}

// isDefault reports whether a text is a value of a type.
func isDefault(t reflect.Type, text string) bool {
	var err error
	switch {
	case t == reflect.TypeFor[Duration]():
		_, err = time.ParseDuration(text)
	case t.Kind() == reflect.Int:
		_, err = strconv.Atoi(text)
	case t.Kind() == reflect.Float64:
		_, err = strconv.ParseFloat(text, 64)
	case t.Kind() == reflect.Bool:
		return text == "true" || text == "false"
	default:
		return t.Kind() == reflect.String
	}
	return err == nil
}

// isRule reports whether the value of a field can have a rule of the tag validate.
func isRule(t reflect.Type, rule string) bool {
	name, value, _ := strings.Cut(rule, "=")
	switch name {
	case "", "omitempty":
		return true
	case "provider", "hosted", "policy", "store":
		return t.Kind() == reflect.String
	case "oneof":
		return t.Kind() == reflect.String && value != ""
	case "http_url":
		return t.Kind() == reflect.String
	case "gt", "gte", "lt", "lte", "min", "max":
		_, err := strconv.ParseFloat(value, 64)
		isSized := slices.Contains([]reflect.Kind{reflect.String, reflect.Int, reflect.Int64, reflect.Float64, reflect.Slice, reflect.Map}, t.Kind())
		if t.Kind() != reflect.Float64 {
			_, err = strconv.Atoi(value)
		}
		return err == nil && isSized
	}
	return false
}

// checkSignatures returns an error for a tag in or out that demands what no variable has.
func checkSignatures(s Step) error {
	all, err := Signatures(s)
	for _, signature := range all {
		for _, d := range signature.Demands {
			for _, name := range d.Types {
				elem := strings.TrimSuffix(strings.TrimPrefix(name, "list["), "]")
				if name != "list" && !slices.Contains(BuiltInTypes(), elem) {
					return fmt.Errorf("the tag in or out demands the type %q, which there is not", name)
				}
			}
		}
	}
	return err
}
