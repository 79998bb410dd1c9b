package googleai

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/spec/chat"
)

// content is everything that one side adds before the other side does.
type content struct {
	Role  string `json:"role,omitempty"` // user or model
	Parts []part `json:"parts"`
}

// part is a part of a content, in a request and in an answer. One of its fields is set,
// in addition to the two about thoughts.
type part struct {
	Text      *string         `json:"text,omitempty"`
	Inline    *blob           `json:"inlineData,omitempty"`
	File      *file           `json:"fileData,omitempty"`
	Call      *functionCall   `json:"functionCall,omitempty"`
	Result    *functionResult `json:"functionResponse,omitempty"`
	Thought   bool            `json:"thought,omitempty"`
	Signature string          `json:"thoughtSignature,omitempty"`

	raw json.RawMessage // the whole of a part that only Google knows, such as executableCode
}

// MarshalJSON writes a part that only Google knows as it came.
func (p part) MarshalJSON() ([]byte, error) {
	if p.raw != nil {
		return p.raw, nil
	}
	type plain part
	return json.Marshal(plain(p))
}

type blob struct {
	MimeType string `json:"mimeType"`
	Data     string `json:"data"` // base64
}

type file struct {
	MimeType string `json:"mimeType,omitempty"`
	URI      string `json:"fileUri"`
}

type functionCall struct {
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name"`
	Args      json.RawMessage `json:"args,omitempty"` // an object
	Continues bool            `json:"willContinue,omitempty"`
}

type functionResult struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
	Parts    []resultPart      `json:"parts,omitempty"` // media, for models from Gemini 3
}

// resultPart is an image or another file in the result of a tool.
type resultPart struct {
	Inline *blob `json:"inlineData,omitempty"`
}

// signature is the item of a block: what a part has in addition to the block.
type signature struct {
	Thought string `json:"thoughtSignature"`
	// From is where the signed part begins in the text of the block: an answer in one or more
	// parts without a signature and one with it is one text.
	From int `json:"from,omitempty"`
}

// signatureField is the Field of items with a signature. Items of other fields are whole parts.
const signatureField = "thoughtSignature"

func (s signature) item() chat.Item {
	raw, _ := json.Marshal(s) // texts and numbers always encode
	return chat.Item{Field: signatureField, JSON: string(raw)}
}

// signatureOf returns the signature of a block, empty for none.
func signatureOf(b *chat.Block) (s signature) {
	if b.Item != nil && b.Item.Field == signatureField {
		_ = json.Unmarshal([]byte(b.Item.JSON), &s) // an item that someone changed is none
	}
	return s
}

// answerParts encodes a block of an answer in its place.
func answerParts(b chat.Block) ([]part, error) {
	signed := signatureOf(&b)
	switch {
	case b.Call != nil:
		call := &functionCall{ID: b.Call.ID, Name: b.Call.Name, Args: wire.Arguments(b.Call.Arguments)}
		return []part{{Call: call, Signature: signed.Thought}}, nil
	case b.Type == chat.ItemType && b.Item != nil && json.Valid([]byte(b.Item.JSON)):
		return []part{{raw: json.RawMessage(b.Item.JSON)}}, nil
	case b.IsModels() && b.Item == nil, b.IsCitation():
		return nil, nil
	case b.IsText() || b.IsModels():
		return signedText(b, signed), nil
	}
	made, err := partOf(b)
	made.Signature = signed.Thought
	return []part{made}, err
}

// signedText encodes a text as the parts in which it came: without a signature, and with it.
func signedText(b chat.Block, signed signature) []part {
	thought := b.Type == chat.ReasoningType
	from := max(0, min(signed.From, len(b.Text)))
	if signed.Thought == "" {
		from = len(b.Text)
	}
	var parts []part
	if text := b.Text[:from]; text != "" {
		parts = append(parts, part{Text: &text, Thought: thought})
	}
	if text := b.Text[from:]; signed.Thought != "" {
		parts = append(parts, part{Text: &text, Thought: thought, Signature: signed.Thought})
	}
	return parts
}

// partOf encodes a block. Data of any type is sent inline; the model decides which
// types it accepts.
func partOf(b chat.Block) (part, error) {
	mime := b.MimeType
	media := b.Type == "image" || b.Type == "audio" || b.Type == "video" || b.Type == "file"
	switch {
	case b.Media():
		if mime == "" && b.Type == "image" {
			mime = wire.ImageType(b.Data)
		}
		if mime == "" {
			return part{}, fmt.Errorf("%s cannot be sent to google-ai without its media type", b.Type)
		}
		return part{Inline: &blob{MimeType: mime, Data: base64.StdEncoding.EncodeToString(b.Data)}}, nil
	case media && b.Text != "":
		return part{File: &file{MimeType: mime, URI: b.Text}}, nil
	case b.Type == "bytes":
		return part{}, wire.UnsupportedContent(b, "google-ai")
	}
	return part{Text: &b.Text}, nil
}

// references are the sources that an answer is based on. They come next to its content, in a
// stream with one of its events.
type references struct {
	Grounding struct {
		Chunks []struct {
			Web       *reference `json:"web"`
			Retrieved *reference `json:"retrievedContext"`
			Maps      *reference `json:"maps"`
			Image     *struct {
				Page  string `json:"sourceUri"`
				Title string `json:"title"`
			} `json:"image"`
		} `json:"groundingChunks"`
	} `json:"groundingMetadata"`
	Pages struct {
		List []struct {
			URL    string `json:"retrievedUrl"`
			Status string `json:"urlRetrievalStatus"`
		} `json:"urlMetadata"`
	} `json:"urlContextMetadata"`
	Quoted struct {
		List    []reference `json:"citations"`
		Sources []reference `json:"citationSources"` // the name in the Gemini API
	} `json:"citationMetadata"`
}

// reference is one source.
type reference struct {
	URL      string `json:"uri"`
	Title    string `json:"title"`
	Text     string `json:"text"`
	Document string `json:"documentName"`
}

// add adds the references of an event.
func (r *references) add(more references) {
	r.Grounding.Chunks = append(r.Grounding.Chunks, more.Grounding.Chunks...)
	r.Pages.List = append(r.Pages.List, more.Pages.List...)
	r.Quoted.List = append(append(r.Quoted.List, more.Quoted.List...), more.Quoted.Sources...)
}

// cite adds each source once to an answer.
func (r *references) cite(draft *wire.ResponseBuilder) error {
	var all []reference
	for _, c := range r.Grounding.Chunks {
		for _, ref := range []*reference{c.Web, c.Retrieved, c.Maps} {
			if ref != nil {
				all = append(all, *ref)
			}
		}
		if c.Image != nil {
			all = append(all, reference{URL: c.Image.Page, Title: c.Image.Title})
		}
	}
	for _, page := range r.Pages.List {
		if page.Status == "" || page.Status == "URL_RETRIEVAL_STATUS_SUCCESS" {
			all = append(all, reference{URL: page.URL})
		}
	}
	all = append(all, r.Quoted.List...)
	seen := map[reference]bool{}
	for _, ref := range all {
		key := reference{URL: ref.URL}
		if ref.URL == "" {
			key = ref
		}
		if ref == (reference{}) || seen[key] {
			continue
		}
		seen[key] = true
		name := cmp.Or(ref.Document, ref.URL, ref.Title)
		source := citation.Source{Number: len(seen), ID: name, Title: cmp.Or(ref.Title, name), URL: ref.URL, Text: ref.Text}
		if err := draft.AppendCitation(source.Excerpt().Block()); err != nil {
			return err
		}
	}
	return nil
}
