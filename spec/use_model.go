package spec

import (
	"reflect"
	"slices"
)

// UseModel lets another chat model answer in a flow: the steps whose text is an output of the
// flow refer to it from then on. Nothing changes if there is no such flow or model.
func (a *Application) UseModel(flow, model string) {
	i := slices.IndexFunc(a.Flows, func(f *Flow) bool { return f.ID == flow })
	to := slices.IndexFunc(a.Models, func(m ModelEntity) bool { return m.EntityID() == model })
	if i < 0 || to < 0 {
		return
	}
	for _, output := range a.Flows[i].Outputs {
		writers := a.Flows[i].Writers(output.ID)
		for s := range a.Flows[i].Plan().All() {
			if writers[s.Step.EntityID()] {
				useModel(s.Step, a.Models[to])
			}
		}
	}
	for _, f := range a.Flows {
		f.SetPlan()
	}
}

// useModel changes the key `model` of a step that calls a chat model.
func useModel(s Step, m ModelEntity) {
	field := reflect.Indirect(reflect.ValueOf(s)).FieldByName("Model")
	if !field.IsValid() {
		return
	}
	if ref, ok := field.Addr().Interface().(*Ref[ModelEntity]); ok {
		ref.ID, ref.To = m.EntityID(), m
	}
}
