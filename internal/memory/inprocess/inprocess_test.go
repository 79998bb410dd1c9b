package inprocess_test

import (
	"reflect"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
	"github.com/qtype-dev/qtype/spec"
)

func TestMain(m *testing.M) {
	testkit.LimitChecks()
	goleak.VerifyTestMain(m)
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return inprocess.New() })
}

// TestStore_Events checks that all events come back as they were added: those of
// evictions are stored in another form.
func TestStore_Events(t *testing.T) {
	day := time.Date(2026, 11, 23, 4, 5, 6, 7000, time.UTC)
	flush := store.Event{Kind: store.EventFlush, Turn: 3, From: 1 << 40, To: 1<<40 + 2, Messages: 3, Tokens: 300,
		Rule: spec.PolicyMessageWindow, Before: 13, Limit: 10, Unit: store.InMessages, Time: day}
	var want []store.Event
	for _, change := range []func(*store.Event){
		func(*store.Event) {},
		func(e *store.Event) { e.Rule, e.Unit, e.Tokens = spec.PolicyTokenWindow, store.InTokens, -1 },
		func(e *store.Event) { e.Rule, e.Reason = spec.PolicyFlush, "why" },
		func(e *store.Event) { *e = store.Event{Kind: store.EventSet, Reason: "set", Time: day} },
		func(e *store.Event) { e.Rule = "" },
		func(e *store.Event) { e.Rule = "of another program" },
		func(e *store.Event) { e.Unit = "" },
		func(e *store.Event) { e.Time = day.Add(1) },
		func(e *store.Event) { e.Time = time.Time{} },
		func(e *store.Event) { e.Time = day.In(time.FixedZone("there", 3600)) },
		func(e *store.Event) { e.Rewound = 1 },
		func(e *store.Event) { e.Call = &store.Call{Model: "m"} },
		func(e *store.Event) { e.Others = 7 },
		func(*store.Event) {},
	} {
		e := flush
		change(&e)
		want = append(want, e)
	}
	want = append(want, callEvents(day)...)
	backend, key := inprocess.New(), store.Key{Memory: "m", Session: "s"}
	testkit.Must(t, backend.Apply(t.Context(), key, store.Change{Next: 1, Events: want[:5]}))
	testkit.Must(t, backend.Apply(t.Context(), key, store.Change{Version: 1, Next: 2, Events: want[5:]}))
	for range 2 {
		var got []store.Event
		for e, err := range backend.Events(t.Context(), key) {
			testkit.Must(t, err)
			got = append(got, e)
		}
		if len(got) != len(want) {
			t.Fatalf("%d events, want %d", len(got), len(want))
		}
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Errorf("event %d is\n%+v with %+v, want\n%+v with %+v", i, got[i], got[i].Call, want[i], want[i].Call)
			}
		}
	}
}

// callEvents returns events of calls, in each of which another field of the event or of the call has a value.
func callEvents(day time.Time) []store.Event {
	sent := func() store.Event {
		return store.Event{Kind: store.EventSent, Turn: 5, From: 1, To: 4, Messages: 4, Tokens: 90, Time: day, Call: &store.Call{Model: "m"}}
	}
	all := []store.Event{sent()}
	for i := range reflect.TypeFor[store.Call]().NumField() {
		e := sent()
		setField(reflect.ValueOf(e.Call).Elem().Field(i))
		all = append(all, e)
	}
	for i := range reflect.TypeFor[store.Event]().NumField() {
		e := sent()
		setField(reflect.ValueOf(&e).Elem().Field(i))
		all = append(all, e)
	}
	return all
}

// setField gives a field a value unlike its zero value.
func setField(field reflect.Value) {
	switch field.Kind() {
	case reflect.Int, reflect.Int64:
		field.SetInt(-1234567)
	case reflect.String:
		field.SetString("7-9")
	case reflect.Bool:
		field.SetBool(true)
	case reflect.Float64:
		field.SetFloat(1.37)
	case reflect.Slice:
		field.Set(reflect.MakeSlice(field.Type(), 1, 1))
	case reflect.Pointer:
		field.SetZero()
	case reflect.Struct:
		field.Set(reflect.ValueOf(time.Date(2027, 1, 2, 3, 4, 5, 6, time.UTC)))
	}
}
