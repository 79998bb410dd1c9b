package spec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

func TestParseType(t *testing.T) {
	for text, want := range map[string]string{
		"text": "text", "text?": "text?", "list[text]": "list[text]", "list[text]?": "list[text]?",
		"list[list[int]]": "list[list[int]]", "list[text?]": "list[text?]", "My.Type-1": "My.Type-1",
	} {
		got, err := spec.ParseType(text)
		if err != nil || got.String() != want {
			t.Errorf("%q is read as %q, %v", text, got, err)
		}
	}
	for text, misplaced := range map[string]bool{
		"": false, "list[]": false, "list[text": false, "list text": false, " text": false, "text]": false,
		"text??": true, "te?xt": true, "list[text]??": true, strings.Repeat("list[", 40) + "text" + strings.Repeat("]", 40): false,
	} {
		var e *spec.TypeError
		if _, err := spec.ParseType(text); !errors.As(err, &e) || e.Misplaced != misplaced || !strings.Contains(err.Error(), text) {
			t.Errorf("%.20q: %v, want a type error, misplaced %v", text, err, misplaced)
		}
	}
}

// What is read prints as what was written; nothing makes the parser fail otherwise.
func FuzzParseType(f *testing.F) {
	for _, seed := range []string{"text", "list[text?]?", "list[list[A]]", "??", "list[", "list[]]", "a b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := spec.ParseType(text)
		if err == nil && got.String() != text {
			t.Errorf("%q is read as %q", text, got)
		}
		if err == nil && !got.Same(got) {
			t.Errorf("%q does not equal itself", text)
		}
	})
}

func TestTypesAreComparedByName(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"text", "text?", true}, {"text", "int", false}, {"list[text]", "list[text]?", true},
		{"list[text]", "text", false}, {"list[text?]", "list[text]", false}, {"list[list[A]]", "list[list[A]]", true},
	} {
		a, _ := spec.ParseType(c.a)
		b, _ := spec.ParseType(c.b)
		if a.Same(b) != c.same || b.Same(a) != c.same {
			t.Errorf("%s and %s: same should be %v", a, b, c.same)
		}
	}
}

func TestSecret_IsRedacted(t *testing.T) {
	s := spec.NewSecret("sk-12345")
	auth := &spec.APIKeyAuth{APIKey: s}
	asJSON, err := json.Marshal(map[string]any{"secret": s, "pointer": &s})
	if err != nil {
		t.Fatal(err)
	}
	printed := strings.Join([]string{fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s %q %d %x", s, s, s, s, s, s, s), fmt.Sprintf("%v %+v %#v", auth, *auth, auth.APIKey), string(asJSON)}, "\n")
	if strings.Contains(printed, "12345") || strings.Contains(printed, fmt.Sprintf("%x", "12345")) {
		t.Errorf("the secret is printed:\n%s", printed)
	}
	if !strings.Contains(string(asJSON), `"***"`) || s.Reveal() != "sk-12345" {
		t.Errorf("got %s and %q", asJSON, s.Reveal())
	}
	if (spec.Secret{}).String() != "" || !(spec.Secret{}).IsZero() {
		t.Error("an empty secret must print as nothing")
	}
}

func TestRef_LinksItsKindOnly(t *testing.T) {
	var r spec.Ref[*spec.Memory]
	r.ID, r.Span = "m", source.Span{File: &source.File{Path: "a.yaml"}}
	if r.Link(&spec.Model{ID: "m"}) || r.Entity() != nil {
		t.Error("a memory reference was linked to a model")
	}
	if !r.Link(&spec.Memory{ID: "m"}) || r.Entity() == nil || r.To.ID != "m" {
		t.Error("a memory reference was not linked to its memory")
	}
	var m spec.Ref[spec.ModelEntity]
	if !m.Link(&spec.EmbeddingModel{}) || !m.Link(&spec.Model{}) || m.Link(&spec.Flow{}) {
		t.Error("a model reference takes chat and embedding models, and no flow")
	}
}

func TestPlacesAreFoundByNameAndIndexAndNeverMissing(t *testing.T) {
	file := &source.File{Path: "a.yaml"}
	at := func(line int) source.Span {
		return source.Span{File: file, Start: source.Pos{Line: line, Column: 1}, End: source.Pos{Line: line, Column: 2}}
	}
	p := &spec.Position{Value: at(1), Parts: []*spec.Position{
		{Name: "inputs", Key: at(2), Value: at(3), Parts: []*spec.Position{{Value: at(4)}, {Value: at(5)}}}}}
	for line, got := range map[int]*spec.Position{3: p.Field("inputs"), 5: p.Field("inputs").Index(1), 1: p.Field("absent"), 4: p.Field("inputs").Index(0)} {
		if got.Span().Start.Line != line {
			t.Errorf("found line %d, want %d", got.Span().Start.Line, line)
		}
	}
	if p.Field("inputs").Index(9).Span().Start.Line != 3 || (*spec.Position)(nil).Field("x").Index(1).Span() != (source.Span{}) {
		t.Error("an absent key must have the position of its mapping")
	}
}

// Every struct of the language is complete: each field of a case has a key, and
// each tag makes a node of a different type.
func TestUnionsAreWellFormed(t *testing.T) {
	for _, u := range spec.Unions() {
		seen := map[string]bool{}
		for _, c := range u.Cases {
			n := c.New()
			if seen[c.Tag] || !reflect.TypeOf(n).Implements(u.Type) || spec.TypeName(n) != c.Tag {
				t.Errorf("%s %s: doubled, no %s, or named %q", u.Name, c.Tag, u.Type, spec.TypeName(n))
			}
			seen[c.Tag] = true
			keyed(t, reflect.TypeOf(n).Elem())
		}
	}
}

func keyed(t *testing.T, s reflect.Type) {
	for i := range s.NumField() {
		f := s.Field(i)
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			keyed(t, f.Type)
		case f.IsExported() && f.Tag.Get("yaml") == "":
			t.Errorf("%s.%s has no key", s.Name(), f.Name)
		}
	}
}
