package googleai

import (
	"cmp"

	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/internal/model/wire"
)

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
