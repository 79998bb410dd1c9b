package bedrock

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// reply is an answer.
type reply struct {
	Output struct {
		Message *struct {
			Content []json.RawMessage `json:"content"`
		} `json:"message"`
	} `json:"output"`
	Stop  string            `json:"stopReason"`
	Usage wire.Loose[usage] `json:"usage"`
	Tier  tier              `json:"serviceTier"`
}

// usage counts tokens. Input excludes tokens read from and written to the prompt cache.
type usage struct {
	Input   wire.Count `json:"inputTokens"`
	Output  wire.Count `json:"outputTokens"`
	Cached  wire.Count `json:"cacheReadInputTokens"`
	Written wire.Count `json:"cacheWriteInputTokens"`
	Details []struct {
		Lifetime string     `json:"ttl"`
		Tokens   wire.Count `json:"inputTokens"`
	} `json:"cacheDetails"` // what was written, by its lifetime
}

// tier is the tier of service that answered.
type tier struct {
	Type string `json:"type"`
}

// counts returns the usage in the terms of model.Usage.
func (u usage) counts(t tier) model.Usage {
	sum := model.Usage{Input: int(u.Input + u.Cached + u.Written), Output: int(u.Output), Cached: int(u.Cached), CacheWrite: int(u.Written)}
	if t.Type != "default" {
		sum.Tier = t.Type
	}
	for _, d := range u.Details {
		switch d.Lifetime {
		case "5m":
			sum.CacheWrites.Minutes5 += int(d.Tokens)
		case "1h":
			sum.CacheWrites.Hour1 += int(d.Tokens)
		}
	}
	return sum
}

// citedText is a text of an answer with the sources that it cites.
type citedText struct {
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	Citations []cited `json:"citations"`
}

// cited is a source that a text cites.
type cited struct {
	Title  string `json:"title"`
	Source string `json:"source"` // of a result of a search
	Quoted []struct {
		Text string `json:"text"`
	} `json:"sourceContent"`
	Location struct {
		Web *struct {
			URL string `json:"url"`
		} `json:"web"`
		Page *struct {
			Start int `json:"start"`
		} `json:"documentPage"`
	} `json:"location"`
}

// source returns the source in the terms of all providers.
func (c cited) source(number int) citation.Source {
	s := citation.Source{Number: number}
	if c.Location.Web != nil {
		s.URL = c.Location.Web.URL
	}
	if c.Location.Page != nil {
		s.Page = c.Location.Page.Start
	}
	if len(c.Quoted) > 0 {
		s.Text = c.Quoted[0].Text
	}
	s.ID = cmp.Or(c.Source, s.URL, c.Title)
	s.Title = cmp.Or(c.Title, s.ID)
	return s.Excerpt()
}

// assembler builds a response from its parts.
type assembler struct {
	draft   wire.ResponseBuilder
	schema  bool // whether the call of a tool is the answer
	sources []cited
	blocks  map[int]*partial // of a stream, those that are not complete
	stop    string
	usage   usage
	tier    tier
	done    bool
}

// Whole reads a response that is not streamed.
func (a *assembler) Whole(raw []byte) error {
	var r reply
	if err := json.Unmarshal(raw, &r); err != nil {
		return wire.Shape(err)
	}
	if r.Output.Message == nil {
		return errors.New("no output message")
	}
	for _, b := range r.Output.Message.Content {
		if err := a.add(b); err != nil {
			return err
		}
	}
	a.stop, a.usage, a.tier = r.Stop, r.Usage.Value, r.Tier
	return nil
}

// add adds a complete block.
func (a *assembler) add(raw json.RawMessage) error {
	var b block
	if err := json.Unmarshal(raw, &b); err != nil {
		return wire.Shape(err)
	}
	switch {
	case b.Use != nil && b.Use.Type == "":
		a.call(b.Use, string(b.Use.Input))
		return nil
	case len(b.Reasoning) > 0:
		return a.reason(b.Reasoning)
	case b.Image != nil:
		return a.image(b.Image)
	case b.Text != nil:
		_, err := a.draft.AppendText(*b.Text, "")
		return err
	case b.Cited != nil:
		for _, part := range b.Cited.Content {
			if _, err := a.draft.AppendText(part.Text, ""); err != nil {
				return err
			}
		}
		a.sources = append(a.sources, b.Cited.Citations...)
		return nil
	}
	return a.draft.AppendItem(chat.ItemType, "", chat.Item{Field: blockField, JSON: string(raw)})
}

// reason adds reasoning. What has a signature, or is encrypted, is an item.
func (a *assembler) reason(raw json.RawMessage) error {
	var r reasoning
	if err := json.Unmarshal(raw, &r); err != nil {
		return wire.Shape(err)
	}
	if r.Text != nil {
		if _, err := a.draft.AppendText("", r.Text.Text); err != nil {
			return err
		}
	}
	return a.seal(r, string(raw))
}

// seal ends reasoning, the text of which is in the draft.
func (a *assembler) seal(r reasoning, raw string) error {
	if r.Redacted == "" && (r.Text == nil || r.Text.Signature == "") {
		a.draft.Close()
		return nil
	}
	return a.draft.Attach(chat.ReasoningType, chat.Item{Field: reasoningField, JSON: raw})
}

// call adds a complete call.
func (a *assembler) call(use *toolUse, input string) {
	if a.schema {
		_, _ = a.draft.AppendText(input, "") // its length was checked
		return
	}
	a.draft.Call(use.ID, use.Name, input)
}

// image adds an image.
func (a *assembler) image(m *media) error {
	kind := ""
	if m.Format != "" {
		kind = "image/" + m.Format
	}
	return a.draft.AppendMedia(kind, m.Source.Bytes)
}

// Response returns the complete answer.
func (a *assembler) Response() (*model.Response, error) {
	for _, i := range slices.Sorted(maps.Keys(a.blocks)) {
		if err := a.complete(i); err != nil {
			return nil, err
		}
	}
	seen := map[citation.Source]bool{}
	for _, c := range a.sources {
		key := c.source(0)
		key.Text = ""
		if seen[key] {
			continue
		}
		seen[key] = true
		if err := a.draft.AppendCitation(c.source(len(seen)).Block()); err != nil {
			return nil, err
		}
	}
	resp := &model.Response{Message: a.draft.Message(), Usage: a.usage.counts(a.tier)}
	resp.Finish, resp.Reason = wire.Finish(a.stop, a.draft.Calls())
	return resp, nil
}
