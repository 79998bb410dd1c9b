package xflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/jq"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// typeOf returns the type of a variable.
func (w *workflow) typeOf(id string) *document.Type {
	for _, d := range w.data {
		if d.id == id {
			return d.of
		}
	}
	return w.locals[id]
}

// datum returns the data with a name, and declares it at first use.
func (w *workflow) datum(name string) *dataVar {
	for _, d := range w.data {
		if d.name == name {
			return d
		}
	}
	id := cmp.Or(strings.NewReplacer("-", "_", ".", "_").Replace(document.Slug(name)), "data")
	if !document.IsIdentifier(id) || slices.Contains(jq.ReservedNames(), id) {
		id += "_"
	}
	for w.isData(id) || w.ids.Taken[id] && !w.guess { // other ids give way in the next pass
		id += "_"
	}
	w.ids.Taken[id] = true
	d := &dataVar{name: name, id: id, of: &document.Type{TopLevel: true}}
	w.data = append(w.data, d)
	return d
}

// isData reports whether an id belongs to data.
func (w *workflow) isData(id string) bool {
	return slices.ContainsFunc(w.data, func(d *dataVar) bool { return d.id == id })
}

// noteRenamed lists the data whose name is not a valid id in a comment.
func (w *workflow) noteRenamed() {
	var all []string
	for _, d := range w.data {
		if d.id != d.name {
			all = append(all, fmt.Sprintf("%q is %s", d.name, d.id))
		}
	}
	if len(all) > 0 {
		w.app.Comments = append(w.app.Comments, "Renamed data: "+strings.Join(all, ", ")+".")
	}
}

// write records that a state sets data, and returns its variable. fits is false if
// the value does not fit, which is reported.
func (w *workflow) write(name string, of *document.Type, at *input.Node) (id string, fits bool) {
	d := w.datum(name)
	switch {
	case !of.IsFlat():
		w.Unsupported(at, "%s is a list of lists, which a variable cannot be; it is ignored", name)
		return "", false
	case of.HasNullableElements() && of.Elem.Declared:
		w.Unsupported(at, "%s: elements may be null in the file, but not in a variable", name)
	case of.HasNullableElements():
		w.Assumed(at, "%s: a null element is an error here, but not in the file", name)
	}
	if !w.guess {
		if _, fits = document.Join(d.of, of); !fits {
			w.Unsupported(at, "%s is %s here and %s elsewhere; a variable has one type, so this assignment is ignored", name, of.Kind.Noun(), d.of.Kind.Noun())
		}
		return d.id, fits
	}
	if of.Kind == document.Unknown && !of.Declared && d.of.Kind < document.List {
		of.Kind = d.of.Kind // data and its source have the same type
	}
	if !d.of.Declared && d.of.Kind != document.Unknown { // declarations take precedence over use
		d.of = &document.Type{Optional: d.of.Optional, TopLevel: true}
	}
	made, ok := document.Join(d.of, of)
	if !ok {
		return d.id, false
	}
	if made != d.of {
		made2 := *made
		made2.Optional = made2.Optional || d.of.Optional
		d.of = &made2
	}
	return d.id, true
}

// local declares a variable that is not data.
func (w *workflow) local(name string, of *document.Type) string {
	id := w.ids.New(strings.NewReplacer("-", "_", ".", "_").Replace(document.Slug(name)), "value")
	w.locals[id] = of
	return id
}

// settle makes data of unknown type strings, and results of functions any value.
func (w *workflow) settle() {
	for _, d := range w.data {
		switch {
		case d.result && d.of.Kind == document.List && d.of.Elem.Kind == document.Unknown:
			d.of.Elem.Kind = document.Any
		case d.of.Kind != document.Unknown:
		case d.result:
			d.of.Kind = document.Any
		default:
			d.of.Kind = document.Text
		}
	}
}

// namedTypes returns the records of all variables, with names.
func (w *workflow) namedTypes() []*document.Type {
	all := w.parts.types
	for _, d := range w.data {
		if !w.guess {
			d.of.Settle(w.ids, d.name, &all)
		}
	}
	for _, id := range w.localIDs() {
		w.locals[id].Settle(w.ids, id, &all)
	}
	return all
}

func (w *workflow) localIDs() []string {
	s := document.Set{}
	for id := range w.locals {
		s.Add(id)
	}
	return s.Sorted()
}

// given returns the data that the caller provides: what a schema declares, and what
// states read although no state can have set it.
func (w *workflow) given(order []*document.Flow) document.Set {
	given := document.Set{}
	for _, d := range w.data {
		if d.input {
			given.Add(d.id)
		}
	}
	missing := document.ComputeAvailable(order, given)
	for _, d := range w.data {
		if missing[d.id] {
			d.input = true
			given.Add(d.id)
		}
	}
	document.ComputeAvailable(order, given)
	return given
}

// sharedBy reports whether flows pass a variable to each other: data, and the name
// of the next state.
func (w *workflow) sharedBy(id string) bool { return w.locals[id] == nil || w.sharedLocals[id] }
