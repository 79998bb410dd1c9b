package validate

import (
	"path/filepath"
	"reflect"

	"github.com/qtype-dev/qtype/spec"
)

// syncRules returns the rules of IndexUpsert steps that remove entries.
func syncRules() []rule {
	return []rule{sharedSync(), nestedSync(), unusedSyncFilters(), highlightsWithoutWords()}
}

func sharedSync() rule {
	return rule{code: "QT530", check: on(func(p *ruleContext, s *spec.IndexUpsert) {
		if !s.Sync || len(s.SyncFilters) > 0 || s.Index.To == nil {
			return
		}
		for other := range p.steps {
			o, ok := other.(spec.IndexWriter)
			if !ok || other == spec.Step(s) || o.WrittenIndex() == nil || !haveSameEntries(o.WrittenIndex(), s.Index.To) {
				continue
			}
			report := p.reportAt(fieldKey(s, "sync"), "step %q would remove from the index %q what other steps have written", s.EntityID(), s.Index.ID).
				WithHint("limit it to its own entries with sync_filters")
			if o.WrittenIndex() != s.Index.To {
				report = report.WithRelated(idPlace(o.WrittenIndex()), "this index has the same entries")
			}
			p.list.Add(report)
			return
		}
	})}
}

// haveSameEntries reports whether two indexes are one in their store: one file, or one collection of a server.
func haveSameEntries(a, b spec.Index) bool {
	if a == b {
		return true
	}
	storeOfA, errA := spec.StoreOf(a)
	storeOfB, errB := spec.StoreOf(b)
	if errA != nil || errB != nil || storeOfA.Name != storeOfB.Name || reflect.TypeOf(a) != reflect.TypeOf(b) {
		return false
	}
	x, y := a.Common(), b.Common()
	if storeOfA.Name == "embedded" {
		return embeddedFile(x) == embeddedFile(y)
	}
	return x.Name == y.Name && endpointOf(a) == endpointOf(b) && reflect.DeepEqual(x.Args, y.Args)
}

// endpointOf returns the address of the server of a DocumentIndex; a VectorIndex has it in args.
func endpointOf(x spec.Index) string {
	if d, ok := x.(*spec.DocumentIndex); ok {
		return d.Endpoint
	}
	return ""
}

// embeddedFile identifies the file of an embedded index.
func embeddedFile(x *spec.IndexBase) string {
	path, _ := x.Args["path"].(string)
	return filepath.Clean(x.EmbeddedFile(path))
}

func nestedSync() rule {
	return rule{code: "QT531", check: on(func(p *ruleContext, f *spec.Flow) {
		caller := p.callersOf(f).itself
		if caller == nil {
			return
		}
		for _, item := range f.Steps {
			if s, ok := item.Step.(spec.IndexWriter); ok && s.Syncs() && s.WrittenIndex() != nil {
				p.list.Add(p.reportAt(fieldKey(s, "sync"), "step %q syncs the index %q in a flow that step %q runs for each row", s.EntityID(), s.WrittenIndex().EntityID(), caller.EntityID()).
					WithRelated(idPlace(caller), "each of its rows is a run of the flow"))
			}
		}
	})}
}

func unusedSyncFilters() rule {
	return rule{code: "QT532", check: on(func(p *ruleContext, s *spec.IndexUpsert) {
		if len(s.SyncFilters) > 0 && !s.Sync {
			p.list.Add(p.reportAt(fieldKey(s, "sync_filters"), "sync_filters of step %q have no effect without sync", s.EntityID()).WithHint("add sync: true, or remove sync_filters"))
		}
	})}
}

func highlightsWithoutWords() rule {
	return rule{code: "QT533", check: on(func(p *ruleContext, s *spec.VectorSearch) {
		if s.Highlights && s.Mode == "vector" {
			p.list.Add(p.reportAt(fieldKey(s, "highlights"), "step %q searches by vectors, which finds no words to highlight", s.EntityID()).WithHint("add mode: hybrid or mode: text"))
		}
	})}
}
