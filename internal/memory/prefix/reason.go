package prefix

import (
	"fmt"
	"slices"
)

// Reason is why a request does not begin with all of the one before.
type Reason string

// The reasons.
const (
	Appended       Reason = ""                // it does
	SystemChanged  Reason = "system"          // the system message, or a context block in it, is another one
	Left           Reason = "left"            // a message is not sent any more
	ContextLeft    Reason = "context_left"    // the context of an earlier question is not sent again
	ContextChanged Reason = "context_changed" // the context of a question is another one, or has less room
	ResultShort    Reason = "shortened"       // a tool result is sent in its short form, or whole again
	ImageLeft      Reason = "imageless"       // the images of a message are sent as captions, or again
	Rewritten      Reason = "rewritten"       // a message has another text
	Inserted       Reason = "inserted"        // something precedes a message that was sent before
)

// Difference is the first difference of two requests.
type Difference struct {
	Shared
	Reason Reason
	Kind   Kind  // of the part of the former request, or of what is new in its place
	Seq    int64 // of the message that is concerned; 0 for none
	ID     string
}

// Compare returns how a request differs from the one before.
func Compare(before, now []Part) Difference { //nolint:cyclop // one case for each reason
	d := Difference{Shared: Common(before, now)}
	n := d.Parts
	if n == len(before) {
		return d
	}
	b := &before[n]
	d.Kind, d.Seq, d.ID = b.Kind, b.Seq, b.ID
	var in *Part // what is in the place of b
	if n < len(now) {
		in = &now[n]
	}
	i := slices.IndexFunc(now, func(p Part) bool { return p.isSame(b) })
	isOf := func(p Part) bool { return p.Kind == Message && p.isOf(b) }
	switch {
	case in != nil && !in.isMessage() && b.isMessage():
		d.Reason, d.Kind, d.Seq, d.ID = SystemChanged, in.Kind, 0, ""
	case !b.isMessage():
		d.Reason = SystemChanged
	case b.Kind == Context && i >= 0:
		d.Reason = ContextChanged
	case b.Kind == Context && slices.ContainsFunc(now, isOf):
		d.Reason = ContextLeft
	case i < 0 || in == nil:
		d.Reason, d.Kind = Left, Message
	case now[i].Form == Shortened || b.Form == Shortened && now[i].Form == Whole:
		d.Reason = ResultShort
	case now[i].Form != b.Form:
		d.Reason = ImageLeft
	case i == n:
		d.Reason = Rewritten
	case in.Kind == Context && in.isOf(b):
		d.Reason = ContextChanged
	default:
		d.Reason, d.Seq, d.ID = Inserted, in.Seq, in.ID
	}
	return d
}

// Text describes a reason in a few words. seq is the position of the message concerned.
func (r Reason) Text(kind Kind, seq int64) string {
	message := "a message"
	if seq > 0 {
		message = fmt.Sprintf("message %d", seq)
	}
	switch r {
	case SystemChanged:
		if kind == System {
			return "the system message changed"
		}
		return fmt.Sprintf("the %s in the system message changed", kind)
	case Left:
		return message + " is not sent any more"
	case ContextLeft:
		return fmt.Sprintf("the context of the earlier question, %s, is not sent again; a memory with prefix: stable keeps it", message)
	case ContextChanged:
		return fmt.Sprintf("the context before %s changed or was cut", message)
	case ResultShort:
		return fmt.Sprintf("the tool result in %s is sent in another form (shorten_tool_results)", message)
	case ImageLeft:
		return fmt.Sprintf("the images of %s are sent in another form (drop_images)", message)
	case Rewritten:
		return message + " has another text"
	case Inserted:
		return message + " was inserted before messages that had been sent"
	}
	return "the request begins with the whole one before"
}
