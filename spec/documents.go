package spec

// Documents returns the application and the documents that it references, at any
// depth, each with its own models and tools in Models and Tools.
func (a *Application) Documents() []*Document {
	all := []*Document{{Application: a, Models: a.Models, Tools: a.Tools}}
	for _, ref := range a.References {
		switch {
		case ref == nil:
		case ref.Application != nil:
			all = append(all, ref.Application.Documents()...)
		default:
			all = append(all, ref)
		}
	}
	return all
}
