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

// Documents returns the documents of the application, or a document that is a list of components itself.
func (d *Document) Documents() []*Document {
	if d.Application == nil {
		return []*Document{d}
	}
	return d.Application.Documents()
}
