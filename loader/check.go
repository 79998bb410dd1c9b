package loader

import (
	"reflect"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// checkRule checks a value against its validator rule. A number out of range is
// replaced by its default, so that later checks report no consequences of it; a
// text is kept.
func (d *decoder) checkRule(n *node, v reflect.Value, f *field) {
	if !isValid(v, f.rule) {
		d.diags.add(ruleDiagnostic(n, f))
		if v.Kind() != reflect.String {
			setDefault(v, f)
		}
	}
}

// isValid reports whether a value fits a validator rule. What an address is, is decided
// by the function that a run uses as well.
func isValid(v reflect.Value, rule string) bool {
	if rest, isAddress := strings.CutSuffix(rule, "http_url"); isAddress && v.Kind() == reflect.String {
		return rest == "omitempty," && v.String() == "" || spec.IsHTTPAddress(v.String())
	}
	return fitsRule(v, rule)
}

// ruleDiagnostic describes a violated rule of the tags of package spec.
func ruleDiagnostic(n *node, f *field) diag.Diagnostic {
	var bounds []string
	words := map[string]string{"gt": "above", "gte": "at least", "min": "at least", "lt": "below", "lte": "at most", "max": "at most"}
	for part := range strings.SplitSeq(f.rule, ",") {
		name, param, _ := strings.Cut(part, "=")
		switch {
		case name == "oneof":
			return choiceDiagnostic(n, f, strings.Fields(param))
		case name == "http_url":
			return addressDiagnostic(n, f)
		case words[name] != "":
			bounds = append(bounds, words[name]+" "+param)
		}
	}
	if len(bounds) == 0 {
		return ruleKind.At(n.span, "%q cannot be %s", f.name, n.describe())
	}
	return ruleRange.At(n.span, "%q must be %s, not %s", f.name, strings.Join(bounds, " and "), n.shown())
}

// addressDiagnostic describes a text that is not the address of a server.
func addressDiagnostic(n *node, f *field) diag.Diagnostic {
	found := ruleKind.At(n.span, "%q needs an address that starts with http:// or https://", f.name)
	if !strings.Contains(n.text, "://") && spec.IsHTTPAddress("http://"+n.text) && strings.ContainsAny(n.text, ".:") {
		return found.WithHint("such as http://%s", n.shown())
	}
	return found
}

func choiceDiagnostic(n *node, f *field, choices []string) diag.Diagnostic {
	found := ruleChoice.At(n.span, "%q cannot be %q", f.name, n.shown())
	if explained, ok := explainValue(found, f.name, n.text, choices); ok {
		return explained
	}
	if found = found.WithNearest(n.text, choices); found.Suggestion != "" {
		return found
	}
	return found.WithHint("%s", oneOf(choices))
}

// checkEntity checks an entity after its fields were decoded, and derives the
// implicit inputs and outputs of steps.
func (d *decoder) checkEntity(n *node, made spec.Node, title string) {
	switch e := made.(type) {
	case *spec.Variable:
		d.checkVariable(n, e, title)
	case *spec.CustomType:
		d.declared[e.ID] = true
	case spec.ModelEntity:
		d.language.Link(e.Base())
		d.checkModelID(n, e.Base(), title)
	case *spec.CategoryFeedback:
		d.checkCategories(n)
	case *spec.RetryPolicy:
		d.checkDelays(n, e)
	case *spec.AWSAuth:
		d.checkAWSAuth(n, e, title)
	case *spec.VertexAuth:
		if !isSet(n, "profile_name", e.ProfileName != "") && !isSet(n, "service_account_file", e.ServiceAccountFile != "") && !isSet(n, "project_id", e.ProjectID != "") {
			d.diags.add(ruleVertexAuth.At(n.head(), "%s names no identity", title).
				WithHint("give a profile_name, a service_account_file, or the project_id, which selects the identity of the environment"))
		}
	case spec.Step:
		spec.DerivePorts(e)
		d.checkPath(n, e)
	}
}

// isSet reports whether a key has a value, or may have one once its environment
// variable is set or its error is fixed.
func isSet(n *node, key string, filled bool) bool {
	value := n.get(key)
	return filled || value != nil && value.unset || !n.place().Complete(key)
}

// checkModelID reports a missing model_id if the provider requires one: otherwise the
// document's id would be sent, which the provider does not know.
func (d *decoder) checkModelID(n *node, m *spec.Model, title string) {
	if p, _ := m.ProviderRow(); !p.ModelIDRequired {
		return
	}
	at := n.get("provider")
	if at == nil || isSet(n, "model_id", m.ModelID != "") {
		return
	}
	d.diags.add(ruleChoice.At(at.span, "%s: \"provider\" cannot be %q without a model_id", title, m.Provider).
		WithHint("add model_id: the name of the model at %s", m.Provider))
}

// checkVariable checks the type of a variable: lists are not nested, and a ? is at the end.
func (d *decoder) checkVariable(n *node, v *spec.Variable, title string) {
	at := n.get("type")
	if at == nil || at.kind == broken || v.Type.String() == "" {
		return
	}
	if elem := v.Type.Elem; elem != nil {
		switch {
		case elem.IsList():
			d.diags.add(ruleNestedList.At(at.head(), "%s: lists cannot be nested", title).
				WithHint("use a list of a custom type that holds the inner list"))
		case elem.Optional:
			meant := spec.Type{Elem: &spec.Type{Name: elem.Name}, Optional: true}
			d.diags.add(misplacedMark(at, target{owner: title}, meant))
			elem.Optional = false
		}
	}
	if ui := n.get("ui"); v.UI != nil && ui.place().Complete("widget", "accept") {
		d.checkUIHint(n, v, title)
	}
}

// checkUIHint checks a hint against the type: widget, which an empty hint implies, is
// for text, accept for file.
func (d *decoder) checkUIHint(n *node, v *spec.Variable, title string) {
	ui, is := n.get("ui"), v.Type.String()
	if written := n.get("type"); written.kind == text {
		is = written.shown()
	}
	accept := ui.has("accept")
	leaf := &v.Type
	for leaf.Elem != nil {
		leaf = leaf.Elem
	}
	add := d.diags.add
	if !isBuiltin(leaf.Name) { // reported only if the type is declared
		add = func(diags ...diag.Diagnostic) { d.hints = append(d.hints, typedHint{leaf.Name, diags[0]}) }
	}
	switch {
	case accept && ui.has("widget"):
		d.diags.add(ruleUIHint.At(ui.head(), "%s: a ui hint has widget or accept, not both", title))
	case accept && !v.Type.Is("file"):
		add(ruleUIHint.At(ui.head(), "%s: ui.accept needs the type file, not %s", title, is))
	case !accept && !v.Type.Is("text"):
		add(ruleUIHint.At(ui.head(), "%s: ui.widget needs the type text, not %s", title, is))
	}
}

// typedHint is a diagnostic of a UI hint that applies only if a custom type is declared.
type typedHint struct {
	typeName   string
	diagnostic diag.Diagnostic
}

// reportUIHints reports the hints that do not fit declared custom types.
func (d *decoder) reportUIHints() {
	for _, h := range d.hints {
		if d.declared[h.typeName] {
			d.diags.add(h.diagnostic)
		}
	}
}

func (d *decoder) checkCategories(n *node) {
	labels := n.get("categories")
	if labels == nil || labels.kind != sequence {
		return
	}
	if len(labels.items) == 0 {
		d.diags.add(ruleCategories.At(labels.head(), "feedback needs at least one category"))
	}
	for _, label := range labels.items {
		if label.kind == text && strings.TrimSpace(label.text) == "" {
			d.diags.add(ruleCategories.At(label.span, "a category cannot be blank"))
		}
	}
}

// checkDelays reports a first delay that is longer than the longest one, which would shorten it. A
// max_delay below the default of initial_delay is not reported: all delays are as long as it is.
func (d *decoder) checkDelays(n *node, r *spec.RetryPolicy) {
	initial, longest := n.get("initial_delay"), n.get("max_delay")
	if !isLength(initial, r.InitialDelay) || longest != nil && !isLength(longest, r.MaxDelay) || r.InitialDelay <= r.MaxDelay {
		return
	}
	if longest == nil {
		d.diags.add(ruleRange.At(initial.span, "\"initial_delay\" must be at most max_delay, whose default is %s, not %s", time.Duration(r.MaxDelay), initial.shown()).
			WithHint("add max_delay: %s", initial.shown()))
		return
	}
	d.diags.add(ruleRange.At(longest.span, "\"max_delay\" must be at least initial_delay, not %s", longest.shown()).
		WithRelated(initial.span, "initial_delay is "+initial.shown()))
}

// isLength reports whether a value is a length of time that was decoded, and not replaced by a default.
func isLength(n *node, decoded spec.Duration) bool {
	if n == nil || n.kind != text || n.unset {
		return false
	}
	length, err := time.ParseDuration(strings.TrimSpace(n.text))
	return err == nil && spec.Duration(length) == decoded
}

// checkAWSAuth requires an identity: a key pair, a profile, a role, or a region, which
// selects the identity of the host.
func (d *decoder) checkAWSAuth(n *node, a *spec.AWSAuth, title string) {
	keys := isSet(n, "access_key_id", !a.AccessKeyID.IsZero()) && isSet(n, "secret_access_key", !a.SecretAccessKey.IsZero())
	profile := isSet(n, "profile_name", a.ProfileName != "")
	role := isSet(n, "role_arn", a.RoleARN != "")
	switch {
	case role && !keys && !profile:
		at := n.head()
		if value := n.get("role_arn"); value != nil {
			at = value.span
		}
		d.diags.add(ruleAWSRole.At(at, "%s has a role but no identity that assumes it", title).
			WithHint("add access_key_id and secret_access_key, or profile_name"))
	case !keys && !profile && !role && !isSet(n, "region", a.Region != ""):
		d.diags.add(ruleAWSAuth.At(n.head(), "%s names no identity", title).
			WithHint("give access_key_id and secret_access_key, profile_name, role_arn or region"))
	}
}
