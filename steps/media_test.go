package steps_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/steps"
)

const png, pngURL = "\x89PNG\r\n\x1a\n\x00", "data:image/png;base64,iVBORw0KGgoA"

// imagePart is an image as the server gets it.
const imagePart = `{"image_url":{"url":"` + pngURL + `"},"type":"image_url"}`

// A question and its pictures are one message of the user, in the request, in the memory
// and in its history: with the id of the question if that is a message.
func TestLLMInference_QuestionWithPictures(t *testing.T) {
	s := newLLM(t, func(n int, _ request) reply { return textReply(fmt.Sprint("Reply ", n)) })
	l := declare(t, nil, "ask: ChatMessage", "note: text", "pic: image", "more: list[image]", "out: text")
	w := newTestEnv(t, s, l, memory.Config{})
	question := chat.Text(chat.User, "What is it?")
	row := func() *steps.Row {
		return l.row(map[string]any{"ask": question, "note": "Look.", "pic": []byte(png), "more": []any{[]byte(png), []byte(png)}})
	}
	both := build(t, w.inference(l, []string{"ask", "pic"}, "out", ""), w.env)
	driveRows(t, both, row())
	one := `user: [{"text":"What is it?","type":"text"},` + imagePart + `]`
	expect(t, "a message and a picture", lines(s.last().Messages), one)
	for e, err := range w.shared.History(t.Context(), "s") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Message.Role == chat.User && (e.Message.ID != question.ID || len(e.Message.Blocks) != 2 || e.Message.Blocks[1].MimeType != "image/png") {
			t.Errorf("the memory has %+v", e.Message)
		}
	}
	driveRows(t, both, row())
	expect(t, "a message that the conversation has", lines(s.last().Messages), one, "assistant: Reply 1", `user: [`+imagePart+`]`)

	step := w.inference(l, []string{"more", "note"}, "out", "")
	step.Memory = spec.Ref[*spec.Memory]{}
	driveRows(t, build(t, step, w.env), row())
	expect(t, "pictures and a text", lines(s.last().Messages), `user: [`+imagePart+`,`+imagePart+`,{"text":"Look.","type":"text"}]`)
}

// painter answers with an image, and a text if it has one.
type painter struct{ text string }

func (painter) Info() model.Info { return model.Info{ID: "m", Name: "painter", Mock: true} }

func (p painter) Generate(context.Context, model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		m := chat.Message{Role: chat.Assistant, Blocks: []chat.Block{{Type: "image", Data: []byte(png), MimeType: "image/png"}}}
		if p.text != "" {
			m.Blocks = append(m.Blocks, chat.Block{Type: "text", Text: p.text})
		}
		yield(model.Event{Response: &model.Response{Message: m, Finish: "stop"}}, nil)
	}
}

// An image of an answer is part of a ChatMessage and of the memory. A text has none: an answer
// without a text is an error then, of an Agent too.
func TestAnswer_Images(t *testing.T) {
	s := newLLM(t, nil)
	l := declare(t, nil, "ask: text", "out: text", "message: ChatMessage")
	for name, c := range map[string]struct {
		model painter
		out   string
		want  string // the kinds of the blocks, the text or the error
	}{
		"a message":            {painter{}, "message", "[image]"},
		"a message and a text": {painter{"A cat."}, "message", "[image text]"},
		"a text":               {painter{"A cat."}, "out", "A cat."},
		"no text":              {painter{}, "out", "the model answered with image (image/png) without a text: the output out must be a ChatMessage"},
	} {
		w := newTestEnv(t, s, l, memory.Config{})
		w.env.Model = func(*spec.Model) (model.Chat, error) { return c.model, nil }
		inference := w.inference(l, []string{"ask"}, c.out, "")
		agent := &spec.Agent{StepBase: inference.StepBase, Model: inference.Model}
		for kind, step := range map[string]spec.Step{"LLMInference": inference, "Agent": agent} {
			row := driveRows(t, build(t, step, w.env), l.row(map[string]any{"ask": "Show a cat."}))[0]
			got := fmt.Sprint(row.Values[l.Slot(l.ref(c.out).To)])
			if m, ok := row.Values[l.Slot(l.ref(c.out).To)].(chat.Message); ok {
				var kinds []string
				for _, b := range m.Blocks {
					kinds = append(kinds, b.Type)
				}
				got = fmt.Sprint(kinds)
			}
			if row.Err != nil {
				got = row.Err.Error()
			}
			if !strings.HasSuffix(got, c.want) {
				t.Errorf("%s, %s: got %s, want %s", kind, name, got, c.want)
			}
		}
	}
}

// mediaServer has tools that return an image, an object with an image, and other bytes.
func mediaServer(t *testing.T) []spec.Ref[spec.Tool] {
	svc := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		encoded := base64.StdEncoding.EncodeToString([]byte(png))
		switch r.URL.Path {
		case "/plot":
			w.Header().Set("Content-Type", "image/png")
			fmt.Fprint(w, png)
		case "/report":
			fmt.Fprintf(w, `{"title": "May", "charts": [{"base64": %q}, %q], "price": 1.5}`, encoded, pngURL)
		default:
			fmt.Fprint(w, "\x00\x01\xff")
		}
	}))
	t.Cleanup(svc.Close)
	var tools []spec.Ref[spec.Tool]
	for _, name := range []string{"plot", "report", "raw"} {
		tools = append(tools, spec.Ref[spec.Tool]{To: &spec.APITool{ToolBase: spec.ToolBase{ID: name, Name: name, Description: "x"}, Endpoint: svc.URL + "/" + name, Method: "GET", AllowPrivate: true}})
	}
	return tools
}

// callRecords is a log of calls.
type callRecords map[string][]byte

func (r callRecords) Recorded(key string) []byte { return r[key] }

func (r callRecords) Record(_ context.Context, key string, result []byte) error {
	r[key] = result
	return nil
}

// Images in the results of tools are sent to the model as images, stored in the memory, and
// the same in a run that is repeated with the recorded calls.
func TestAgent_ImagesOfTools(t *testing.T) {
	log := callRecords{}
	for _, run := range []string{"first", "repeated"} {
		s := newLLM(t, func(n int, _ request) reply {
			if n > 1 {
				return textReply("A line.")
			}
			return callsFor([3]string{"c1", "plot", "{}"}, [3]string{"c2", "report", "{}"}, [3]string{"c3", "raw", "{}"})
		})
		l := declare(t, nil, "say: text", "answer: text")
		w := newTestEnv(t, s, l, memory.Config{})
		heard := &listen{}
		ctx := steps.WithEvents(steps.WithCallLog(t.Context(), log), heard.hear, steps.EventToolResult)
		rows := driveCtx(ctx, t, build(t, w.agent(l, mediaServer(t), true), w.env), l.row(map[string]any{"say": "Plot it."}))
		expect(t, run, []string{show(l, rows[0])}, `{"say":"Plot it.","answer":"A line."}`)
		expect(t, "events", heard.lines, `helper tool-result c1 plot "[image/png, 9 bytes]"`,
			`helper tool-result c2 report "{\"charts\":[\"[image 1]\",\"[image 2]\"],\"price\":1.5,\"title\":\"May\"}\n[image/png, 9 bytes]\n[image/png, 9 bytes]"`,
			`helper tool-result c3 raw "[3 bytes of another type than text, image, sound or PDF]"`)
		if run == "repeated" {
			continue // the answers of the model are recorded too
		}
		follows := "[the files of this result are in the next message of the user]"
		expect(t, "request", lines(s.last().Messages)[3:], "tool(c1): "+follows,
			`tool(c2): {"charts":["[image 1]","[image 2]"],"price":1.5,"title":"May"}`+"\n"+follows,
			"tool(c3): [3 bytes of another type than text, image, sound or PDF]",
			`user: [{"text":"[files of the result of the tool plot (c1)]","type":"text"},`+imagePart+`,{"text":"[files of the result of the tool report (c2)]","type":"text"},`+imagePart+`,`+imagePart+`]`)
		images := 0
		for e, err := range w.shared.History(t.Context(), "s") {
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range e.Message.Blocks {
				if b.Type == "image" && string(b.Data) == png && b.MimeType == "image/png" {
					images++
				}
			}
			if e.Message.ToolCallID == "c2" && e.Tokens < 2*256 {
				t.Errorf("two images are %d tokens", e.Tokens)
			}
		}
		if images != 3 {
			t.Errorf("the memory has %d images", images)
		}
		if strings.Contains(fmt.Sprint(w.history(t, "s")), "base64") {
			t.Error("an image is in a text")
		}
	}
}
