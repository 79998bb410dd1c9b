package spec

// Documents lists the application and everything that it references, each with
// its models and tools in Models and Tools.
func (a *Application) Documents() []*Document {
	all := []*Document{{Application: a, Models: a.Models, Tools: a.Tools}}
	for _, ref := range a.References {
		if ref.Application != nil {
			all = append(all, ref.Application.Documents()...)
			continue
		}
		all = append(all, ref)
	}
	return all
}
