package validate

import (
	"path/filepath"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// fileRules returns the rules of files that steps write.
func fileRules() []rule { return []rule{sharedFile(), nestedFile()} }

func sharedFile() rule {
	return rule{code: "QT328", title: "several steps write one file",
		doc: "A FileWriter replaces a file of an earlier run. A second one in the same run would replace what the first has written, so its rows fail.",
		sample: sample{in: "name: text", steps: `- {type: FileWriter, id: keep, path: {uri: names.csv}, inputs: [name]}
- {type: FileWriter, id: write, path: {uri: ⟦names│others⟧.csv}, inputs: [name]}`, out: "name: text"},
		check: on(func(p *ruleContext, f *spec.Flow) {
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

// fileWriterOf returns the FileWriter of an item; nil for another step, and where there is none.
func fileWriterOf(item *spec.StepItem) *spec.FileWriter {
	if item == nil {
		return nil
	}
	s, _ := item.Step.(*spec.FileWriter)
	return s
}

// isSameFile reports whether two steps write the file of one name, or that of one variable.
func isSameFile(a, b *spec.FileWriter) bool {
	if a.Path.URI != "" || b.Path.URI != "" {
		return a.Path.URI != "" && b.Path.URI != "" && cleanPath(a.Path.URI) == cleanPath(b.Path.URI)
	}
	return a.Path.Var.To != nil && a.Path.Var.To == b.Path.Var.To && a.Base == b.Base
}

// cleanPath returns the short form of a local path, and an address as it is.
func cleanPath(path string) string {
	path = strings.TrimPrefix(path, "file://")
	if strings.Contains(path, "://") {
		return path
	}
	return filepath.Clean(path)
}

// setsPath reports whether one of the steps sets the variable that holds the path of a FileWriter.
func setsPath(steps []*spec.StepItem, s *spec.FileWriter) bool {
	for _, item := range steps {
		if item == nil || item.Step == nil || s.Path.Var.To == nil {
			continue
		}
		for _, out := range item.Step.Common().AllOutputs() {
			if out.To == s.Path.Var.To {
				return true
			}
		}
	}
	return false
}

func nestedFile() rule {
	return rule{code: "QT329", warning: true, title: "one file for each row of a calling flow",
		doc: "A flow that a step runs has one run for each row, and each would write the file of the same name: the second one fails in one run of the application. Use a path from a variable, or write in the flow that calls the step.",
		sample: sample{text: `
id: example
flows:
  - id: write
    variables: [{id: name, type: text}, {id: file, type: text}]
    inputs: [name, file]
    outputs: [name]
    steps: [{type: FileWriter, id: keep, path: ⟦{uri: names.csv}│file⟧, inputs: [name]}]
  - id: main
    variables: [{id: name, type: text}, {id: file, type: text}]
    inputs: [name, file]
    outputs: [name]
    steps: [{type: InvokeFlow, id: call, flow: write, input_bindings: {name: name, file: file}, output_bindings: {name: name}}]
`},
		check: on(func(p *ruleContext, f *spec.Flow) {
			caller := p.callersOf(f).any
			if caller == nil {
				return
			}
			for _, item := range f.Steps {
				if s := fileWriterOf(item); s != nil && s.Path.URI != "" {
					p.list.Add(p.reportAt(placeOf(s, "path", "id"), "step %q writes %s in a flow that step %q runs, and cannot write it for a second row", s.EntityID(), s.Path.URI, caller.EntityID()).
						WithRelated(idPlace(caller), "each of its rows is a run of the flow").WithHint("use a path from a variable"))
				}
			}
		})}
}
