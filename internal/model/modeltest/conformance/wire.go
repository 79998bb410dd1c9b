package conformance

import (
	"bytes"
	"net/http"
	"strings"
	"unicode/utf8"
)

// wireFormat is a protocol: how a request is read and an answer is written.
type wireFormat struct {
	name       string                                               // chat, responses, messages, gemini, converse or ollama
	toolsField string                                               // where a request has its tools
	effort     []string                                             // the fields that control reasoning, the first that is set counts
	read       func(c *conversation)                                // reads parts, tools and the model
	whole      func(c *conversation, a answer) object               // writes an answer at once
	records    func(c *conversation, a answer) []object             // writes it as records of a stream
	frame      func(record object) []byte                           // writes one record
	end        string                                               // follows the records
	single     bool                                                 // an answer is one message
	kind       string                                               // the content type of a stream
	form       func(c *conversation, a answer, item int) object     // the JSON of an item that must come back unchanged; nil for one that has nothing opaque
	refusal    func(c *conversation, e Refusal, text string) object // the body of an error
}

// sse writes a record as an event; its name is the type, if named.
func sse(record object) []byte { return append(append([]byte("data: "), encode(record)...), "\n\n"...) }

func namedSSE(record object) []byte {
	kind, _ := record["type"].(string)
	return append([]byte("event: "+kind+"\n"), sse(record)...)
}

// lines writes a record as a line.
func lines(record object) []byte { return append(encode(record), '\n') }

// chunks splits a text as a stream does.
func chunks(text string) (list []string) {
	for len(text) > 7 {
		n := 7
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		list, text = append(list, text[:n]), text[n:]
	}
	if text != "" {
		list = append(list, text)
	}
	return list
}

// write sends an answer.
func (w *wireFormat) write(rw http.ResponseWriter, c *conversation, a answer) {
	if !c.stream {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write(encode(w.whole(c, a))) // a client that has gone needs no answer
		return
	}
	rw.Header().Set("Content-Type", w.kind)
	var b bytes.Buffer
	for _, record := range w.records(c, a) {
		b.Write(w.frame(record))
	}
	b.WriteString(w.end)
	_, _ = rw.Write(b.Bytes())
}

// contentText returns the text of a content, which is a text or a list of parts with texts.
func contentText(content node) string {
	if content.isText() {
		return content.text()
	}
	var texts []string
	for _, p := range content.items() {
		if t := p.at("text"); t.isText() {
			texts = append(texts, t.text())
		}
	}
	return strings.Join(texts, "\n")
}
