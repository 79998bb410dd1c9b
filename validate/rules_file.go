package validate

import (
	"path/filepath"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// fileRules returns the rules of files that steps write.
func fileRules() []rule {
	return []rule{sharedFile(), nestedFile(), pathType()}
}

func pathType() rule {
	return rule{code: "QT394", check: on(func(p *ruleContext, s spec.FileStep) {
		path, _, _ := s.FilePath()
		t, known := p.typed(&path.Var)
		if !known || spec.HoldsPath(t) {
			return
		}
		diagnostic := p.reportAt(path.Var.Span, "the path of step %q must be text, but variable %q is %s", s.EntityID(), path.Var.ID, t.String())
		if place := typePlace(path.Var.To.Position().Field("type")); !place.IsZero() {
			diagnostic = diagnostic.WithRelated(place, "declared here")
		}
		p.list.Add(diagnostic)
	})}
}

func sharedFile() rule {
	return rule{code: "QT328", check: on(func(p *ruleContext, f *spec.Flow) {
		for i, item := range f.Steps {
			s := fileWriterOf(item)
			if s == nil {
				continue
			}
			for k, before := range f.Steps[:i] {
				first := fileWriterOf(before)
				if first == nil || !isSameFile(first, s) || setsPath(f.Steps[k:i], s) {
					continue
				}
				p.list.Add(p.reportAt(placeOf(s, "path", "id"), "step %q would replace the file of step %q, which has the same path", s.EntityID(), first.EntityID()).
					WithRelated(idPlace(first), "this step writes it first").WithHint("use another name"))
				break
			}
		}
	})}
}

// fileWriterOf returns the step of an item if it writes a file; nil for another step, and where there is none.
func fileWriterOf(item *spec.StepItem) spec.WritingStep {
	if item == nil {
		return nil
	}
	s, _ := item.Step.(spec.WritingStep)
	return s
}

// isSameFile reports whether two steps write the file of one name, or that of one variable.
func isSameFile(a, b spec.WritingStep) bool {
	one, oneBase := a.WrittenFile()
	two, twoBase := b.WrittenFile()
	if one.URI != "" || two.URI != "" {
		return one.URI != "" && two.URI != "" && cleanPath(one.URI) == cleanPath(two.URI)
	}
	return one.Var.To != nil && one.Var.To == two.Var.To && oneBase == twoBase
}

// cleanPath returns the short form of a local path, and an address as it is.
func cleanPath(path string) string {
	path = strings.TrimPrefix(path, "file://")
	if strings.Contains(path, "://") {
		return path
	}
	return filepath.Clean(path)
}

// setsPath reports whether one of the steps sets the variable that holds the path of the file that s writes.
func setsPath(steps []*spec.StepItem, s spec.WritingStep) bool {
	path, _ := s.WrittenFile()
	for _, item := range steps {
		if item == nil || item.Step == nil || path.Var.To == nil {
			continue
		}
		for _, out := range item.Step.Common().AllOutputs() {
			if out.To == path.Var.To {
				return true
			}
		}
	}
	return false
}

func nestedFile() rule {
	return rule{code: "QT329", warning: true, check: on(func(p *ruleContext, f *spec.Flow) {
		caller := p.callersOf(f).any
		if caller == nil {
			return
		}
		for _, item := range f.Steps {
			s := fileWriterOf(item)
			if s == nil {
				continue
			}
			if path, _ := s.WrittenFile(); path.URI != "" {
				p.list.Add(p.reportAt(placeOf(s, "path", "id"), "step %q writes %s in a flow that step %q runs, and cannot write it for a second row", s.EntityID(), path.URI, caller.EntityID()).
					WithRelated(idPlace(caller), "each of its rows is a run of the flow").WithHint("use a path from a variable"))
			}
		}
	})}
}
