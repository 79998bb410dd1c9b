package eval

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// apply changes a document as a variant declares, before it is checked.
func apply(v *spec.Variant, d *spec.Document) (list diag.List) {
	if d.Application == nil {
		return nil // reported by the checker
	}
	models := map[string]spec.ModelEntity{}
	var ids []string
	for _, m := range d.Application.Models {
		if m != nil {
			models[m.EntityID()] = m
			ids = append(ids, m.EntityID())
		}
	}
	originals := map[string]spec.Model{}
	for id, m := range models {
		originals[id] = *m.Base()
	}
	for _, id := range slices.Sorted(maps.Keys(v.Models)) {
		m, known := models[id]
		if !known {
			list.Add(unknownIn(v, "models", "model", id, ids))
			continue
		}
		if other, isModel := originals[v.Models[id]]; isModel {
			other.ID = id
			*m.Base() = other
		} else {
			m.Base().ModelID = v.Models[id]
		}
	}
	steps := stepsOf(d.Application)
	for _, id := range slices.Sorted(maps.Keys(v.Prompts)) {
		s, known := steps[id]
		if !known {
			list.Add(unknownIn(v, "prompts", "step", id, slices.Sorted(maps.Keys(steps))))
			continue
		}
		if !setPrompt(s, v.Prompts[id]) {
			list.Add(ruleInvalid.At(spanOf(v, "prompts"), "step %s has neither a system message nor a template", id))
		}
	}
	return list
}

func unknownIn(v *spec.Variant, key, noun, id string, ids []string) diag.Diagnostic {
	d := ruleUnknown.At(spanOf(v, key), "no %s has the id %q", noun, id)
	if near := diag.Nearest(id, ids); near != "" {
		return d.WithHint("did you mean %q?", near)
	}
	return d.WithHint("available: %s", strings.Join(ids, ", "))
}

// stepsOf returns the steps of an application that is not linked, by id.
func stepsOf(app *spec.Application) map[string]spec.Step {
	all := map[string]spec.Step{}
	for _, f := range app.Flows {
		if f == nil {
			continue
		}
		for _, item := range f.Steps {
			if item != nil && item.Step != nil {
				all[item.Step.EntityID()] = item.Step
			}
		}
	}
	return all
}

// setPrompt sets the system message or the template of a step.
func setPrompt(s spec.Step, text string) bool {
	v := reflect.Indirect(reflect.ValueOf(s))
	for _, key := range []string{"system_message", "template"} {
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			if name == key && v.Field(i).Kind() == reflect.String {
				v.Field(i).SetString(text)
				return true
			}
		}
	}
	return false
}
