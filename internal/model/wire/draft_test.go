package wire_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/wire"
)

func TestResponseBuilder_AppendText(t *testing.T) {
	var d wire.ResponseBuilder
	if events, err := d.AppendText("", ""); len(events) != 0 || err != nil {
		t.Errorf("no text: %v, %v", events, err)
	}
	events, err := d.AppendText("yes", "hm")
	if len(events) != 2 || events[0].Reasoning != "hm" || events[1].Text != "yes" || err != nil {
		t.Errorf("%v, %v: want the thought, then the text", events, err)
	}
	if text := d.Message().Text(); text != "yes" {
		t.Errorf("the message holds %q: thoughts are no part of it", text)
	}
}

func TestResponseBuilder_Limit(t *testing.T) {
	var d wire.ResponseBuilder
	piece := strings.Repeat("x", wire.MaxAnswer/4)
	for range 4 {
		if _, err := d.AppendText(piece, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.AppendText("x", ""); !errors.Is(err, wire.ErrTooLong) {
		t.Errorf("more than %d bytes: %v", wire.MaxAnswer, err)
	}
}

func TestResponseBuilder_CallIDs(t *testing.T) {
	var d wire.ResponseBuilder
	ids := []string{d.Call("theirs", "a", `{"x":1}`), d.Call("", "b", ""), d.Call("", "c", "null")}
	if ids[0] != "theirs" || ids[1] == "" || ids[1] == ids[2] {
		t.Errorf("ids %q: the server's id, and a new one for each other call", ids)
	}
	m := d.Message()
	if len(m.Blocks) != 3 || len(m.Calls()) != 3 {
		t.Fatalf("%+v", m)
	}
	for i, want := range []string{`{"x":1}`, "{}", "{}"} {
		if got := m.Calls()[i]; got.ID != ids[i] || got.Arguments != want {
			t.Errorf("call %d is %+v, want id %s and arguments %s", i, got, ids[i], want)
		}
	}
}

func TestResponseBuilder_Empty(t *testing.T) {
	var d wire.ResponseBuilder
	if m := d.Message(); len(m.Blocks) != 1 || m.Text() != "" || m.ID == "" {
		t.Errorf("%+v", m)
	}
}
