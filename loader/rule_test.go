package loader

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/spec"
)

// The rules mean what they mean in package validator of go-playground.
func TestFitsRule(t *testing.T) {
	zero, five, half := 0, 5, 0.5
	var none *int
	for _, c := range []struct {
		value any
		rule  string
		want  bool
	}{
		{1, "gt=0", true}, {0, "gt=0", false}, {-1, "gte=0", false}, {0, "gte=0", true}, {0.5, "gt=0,lte=1", true}, {1.5, "gt=0,lte=1", false},
		{1, "lt=1", false}, {0.9, "lt=1", true}, {uint8(3), "min=2,max=10", true}, {int64(11), "min=2,max=10", false},
		{0, "omitempty,gt=0", true}, {-1, "omitempty,gt=0", false}, {&zero, "omitempty,gt=0", false}, {&five, "omitempty,gt=0", true}, {&half, "omitempty,gte=0,lte=1", true},
		{none, "omitempty,gt=0", true}, {none, "gt=0", false},
		{"a", "oneof=a b", true}, {"c", "oneof=a b", false}, {"", "oneof=a b", false}, {"", "omitempty,oneof=a b", true}, {"a b", "oneof=a b", false}, {2, "oneof=1 2", true}, {3, "oneof=1 2", false},
		{[]int{1, 2}, "min=2", true}, {[]int{1}, "min=2", false}, {[]int(nil), "omitempty,min=1,max=50", true}, {"grüße", "max=5", true}, {"grüße", "max=4", false},
	} {
		v := reflect.ValueOf(c.value)
		if got := fitsRule(v, c.rule); got != c.want {
			t.Errorf("%v fits %q: %v, want %v", c.value, c.rule, got, c.want)
		}
	}
	for _, rule := range []string{"unknown=1", "gt=x"} {
		if fitsRule(reflect.ValueOf(1), rule) {
			t.Errorf("1 fits %s", rule)
		}
	}
}

// Every rule in the tags of package spec is one that the loader knows, for the type of its field.
func TestRules_Tags(t *testing.T) {
	words := []string{"omitempty", "oneof", "gt", "gte", "lt", "lte", "min", "max", "http_url"}
	seen, rules := map[reflect.Type]bool{}, 0
	var walk func(reflect.Type)
	walk = func(at reflect.Type) {
		switch at.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(at.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[at] {
			return
		}
		seen[at] = true
		for i := range at.NumField() {
			f := at.Field(i)
			walk(f.Type)
			rule := new(spec.Language).ValidateTag(f)
			if rule == "" {
				continue
			}
			rules++
			for part := range strings.SplitSeq(rule, ",") {
				name, _, bounded := strings.Cut(part, "=")
				if !slices.Contains(words, name) {
					t.Errorf("%s.%s: unknown rule %q", at.Name(), f.Name, part)
				}
				of := f.Type
				for of.Kind() == reflect.Pointer {
					of = of.Elem()
				}
				if _, ok := magnitude(reflect.Zero(of)); bounded && name != "oneof" && !ok {
					t.Errorf("%s.%s: rule %q is not for type %s", at.Name(), f.Name, part, f.Type)
				}
			}
		}
	}
	walk(reflect.TypeFor[spec.Application]())
	for _, u := range spec.Unions() {
		for _, c := range u.Cases {
			walk(reflect.TypeOf(c.New()))
		}
	}
	if rules < 40 {
		t.Errorf("%d rules", rules)
	}
}
