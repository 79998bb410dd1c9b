package loader

import (
	"reflect"
	"strings"

	"github.com/go-playground/validator/v10"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// rule checks a value against its validator rule and says what is wrong with it
// in a user's words. A number out of range gives way to its default, so that
// nothing is concluded from it later; a word stays, for no other was meant.
func (d *decoder) rule(n *node, v reflect.Value, f *field) {
	if d.checker == nil {
		d.checker = validator.New()
	}
	if d.checker.Var(v.Interface(), f.rule) != nil {
		d.faults.add(ruleFault(n, f))
		if v.Kind() != reflect.String {
			setDefault(v, f)
		}
	}
}

// ruleFault translates a rule that failed. The rules are those of package spec's tags.
func ruleFault(n *node, f *field) diag.Diagnostic {
	var bounds []string
	words := map[string]string{"gt": "above", "gte": "at least", "min": "at least", "lt": "below", "lte": "at most", "max": "at most"}
	for part := range strings.SplitSeq(f.rule, ",") {
		name, param, _ := strings.Cut(part, "=")
		switch {
		case name == "oneof":
			return choiceFault(n, f, strings.Fields(param))
		case name == "http_url":
			return ruleKind.At(n.span, "%q needs an address that starts with http:// or https://", f.name)
		case words[name] != "":
			bounds = append(bounds, words[name]+" "+param)
		}
	}
	if len(bounds) == 0 {
		return ruleKind.At(n.span, "%q cannot be %s", f.name, n.described())
	}
	return ruleRange.At(n.span, "%q must be %s, not %s", f.name, strings.Join(bounds, " and "), n.shown())
}

func choiceFault(n *node, f *field, choices []string) diag.Diagnostic {
	fault := ruleChoice.At(n.span, "%q cannot be %q", f.name, n.shown())
	if fault = fault.WithNearest(n.text, choices); fault.Suggestion != "" {
		return fault
	}
	return fault.WithHint("%s", oneOf(choices))
}

// check looks at an entity as a whole once its fields are there, and derives
// what the document does not spell out.
func (d *decoder) check(n *node, made spec.Node, title string) {
	switch e := made.(type) {
	case *spec.Variable:
		d.variable(n, e, title)
	case *spec.CustomType:
		d.declared[e.ID] = true
	case spec.ModelEntity:
		d.providerModel(n, e.Base(), title)
	case *spec.CategoryFeedback:
		d.categories(n)
	case *spec.AWSAuth:
		d.awsAuth(n, e, title)
	case *spec.VertexAuth:
		if !isSet(n, "profile_name", e.ProfileName != "") && !isSet(n, "service_account_file", e.ServiceAccountFile != "") {
			d.faults.add(ruleVertexAuth.At(n.head(), "%s names no identity", title).WithHint("give a profile_name or a service_account_file"))
		}
	case spec.Step:
		spec.DerivePorts(e)
	}
}

// isSet tells whether a key holds something, or might once its variable is set
// or what is wrong with it is mended.
func isSet(n *node, key string, filled bool) bool {
	value := n.get(key)
	return filled || value != nil && value.unset || !n.place().Complete(key)
}

// providerModel reports a missing model_id where the provider requires one: the
// document's id would be sent in its place, and the provider does not know it.
func (d *decoder) providerModel(n *node, m *spec.Model, title string) {
	if p, _ := spec.LookupProvider(m.Provider); !p.ModelIDRequired {
		return
	}
	at := n.get("provider")
	if at == nil || isSet(n, "model_id", m.ModelID != "") {
		return
	}
	d.faults.add(ruleChoice.At(at.span, "%s: \"provider\" cannot be %q without a model_id", title, m.Provider).
		WithHint("add model_id: the name by which %s knows the model", m.Provider))
}

// variable checks what only a variable's type must hold to (reference language.md 7.1, 7.5).
func (d *decoder) variable(n *node, v *spec.Variable, title string) {
	at := n.get("type")
	if at == nil || at.kind == broken || v.Type.String() == "" {
		return
	}
	if elem := v.Type.Elem; elem != nil {
		switch {
		case elem.IsList():
			d.faults.add(ruleNestedList.At(at.head(), "%s: lists cannot be nested", title).
				WithHint("use a list of a custom type that holds the inner list"))
		case elem.Optional:
			meant := spec.Type{Elem: &spec.Type{Name: elem.Name}, Optional: true}
			d.faults.add(misplacedMark(at, target{owner: title}, meant))
			elem.Optional = false
		}
	}
	if v.UI != nil {
		d.uiHint(n, v, title)
	}
}

// uiHint holds a hint against the type: widget (also as the empty hint) is for
// text, accept for file.
func (d *decoder) uiHint(n *node, v *spec.Variable, title string) {
	ui, is := n.get("ui"), v.Type.String()
	if written := n.get("type"); written.kind == text {
		is = written.shown()
	}
	accept := ui.has("accept")
	leaf := &v.Type
	for leaf.Elem != nil {
		leaf = leaf.Elem
	}
	add := d.faults.add
	if !isBuiltin(leaf.Name) { // where no such type is declared that alone is the fault
		add = func(faults ...diag.Diagnostic) { d.hints = append(d.hints, typedHint{leaf.Name, faults[0]}) }
	}
	switch {
	case accept && ui.has("widget"):
		d.faults.add(ruleUIHint.At(ui.head(), "%s: a ui hint has widget or accept, not both", title))
	case accept && !v.Type.Is("file"):
		add(ruleUIHint.At(ui.head(), "%s: ui.accept needs the type file, not %s", title, is))
	case !accept && !v.Type.Is("text"):
		add(ruleUIHint.At(ui.head(), "%s: ui.widget needs the type text, not %s", title, is))
	}
}

// typedHint is the fault of a ui hint at a variable of a type of the document's own.
type typedHint struct {
	typeName string
	fault    diag.Diagnostic
}

// hintFaults reports the hints that do not fit types which turned out to be declared.
func (d *decoder) hintFaults() {
	for _, h := range d.hints {
		if d.declared[h.typeName] {
			d.faults.add(h.fault)
		}
	}
}

func (d *decoder) categories(n *node) {
	labels := n.get("categories")
	if labels == nil || labels.kind != sequence {
		return
	}
	if len(labels.items) == 0 {
		d.faults.add(ruleCategories.At(labels.head(), "feedback needs at least one category"))
	}
	for _, label := range labels.items {
		if label.kind == text && strings.TrimSpace(label.text) == "" {
			d.faults.add(ruleCategories.At(label.span, "a category cannot be blank"))
		}
	}
}

// awsAuth demands an identity (reference language.md 8.5): a key pair, a
// profile, a role, or a region and with it the machine's own identity.
func (d *decoder) awsAuth(n *node, a *spec.AWSAuth, title string) {
	keys := isSet(n, "access_key_id", !a.AccessKeyID.IsZero()) && isSet(n, "secret_access_key", !a.SecretAccessKey.IsZero())
	profile := isSet(n, "profile_name", a.ProfileName != "")
	role := isSet(n, "role_arn", a.RoleARN != "")
	switch {
	case role && !keys && !profile:
		at := n.head()
		if value := n.get("role_arn"); value != nil {
			at = value.span
		}
		d.faults.add(ruleAWSRole.At(at, "%s has a role but no identity that assumes it", title).
			WithHint("add access_key_id and secret_access_key, or profile_name"))
	case !keys && !profile && !role && !isSet(n, "region", a.Region != ""):
		d.faults.add(ruleAWSAuth.At(n.head(), "%s names no identity", title).
			WithHint("give access_key_id and secret_access_key, profile_name, role_arn or region"))
	}
}
