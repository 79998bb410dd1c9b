package a2a

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/qtype-dev/qtype/internal/mediafile"
	"github.com/qtype-dev/qtype/internal/mediatype"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// content is what the parts of a message have.
type content struct {
	text   []string
	blocks []chat.Block // texts and files in their order
	files  []file
	data   *value.Record // members of all data parts
}

// file is a part with bytes.
type file struct {
	input    string // the input that its metadata name; empty for none
	bytes    []byte
	declared string // the media type of data of an unknown format
}

// read returns the content of a message.
func read(parts sdk.ContentParts) (*content, error) {
	c := &content{data: value.NewRecord("")}
	for i, p := range parts {
		if p == nil {
			return nil, invalid("part %d is null", i)
		}
		if err := c.add(p); err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
	}
	return c, nil
}

func (c *content) add(p *sdk.Part) error {
	switch v := p.Content.(type) {
	case sdk.Text:
		c.text = append(c.text, string(v))
		c.blocks = append(c.blocks, chat.Block{Type: "text", Text: string(v)})
	case sdk.Raw:
		return c.addFile(p, v, p.MediaType)
	case sdk.URL:
		if !strings.HasPrefix(string(v), "data:") {
			return fmt.Errorf("%w: the server does not fetch files; send the content", sdk.ErrUnsupportedContentType)
		}
		data, mediaType, err := schema.DecodeDataURL(string(v))
		if err != nil {
			return invalid("%s", err)
		}
		return c.addFile(p, data, cmp.Or(p.MediaType, mediaType))
	case sdk.Data:
		return c.addData(v.Value)
	default:
		return invalid("the part has no content")
	}
	return nil
}

func (c *content) addFile(p *sdk.Part, data []byte, mediaType string) error {
	b, err := mediafile.Block("", data, mediaType)
	if err != nil {
		return invalid("%s", err)
	}
	input, _ := p.Metadata["input"].(string)
	if mediatype.Detect(data) != "" {
		mediaType = "" // the content decides
	}
	c.files = append(c.files, file{input, data, mediaType})
	c.blocks = append(c.blocks, *b)
	return nil
}

func (c *content) addData(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return invalid("the data is not JSON")
	}
	parsed, err := value.Parse(string(raw))
	if err != nil {
		return invalid("%s", err)
	}
	record, ok := parsed.(*value.Record)
	if !ok {
		return invalid("the data must be an object, not %s", value.Describe(parsed))
	}
	for name, member := range record.All() {
		c.data = c.data.With(name, member)
	}
	return nil
}

// inputs returns the inputs of a flow.
func (c *content) inputs(flow *schema.Flow) (*value.Record, error) {
	if flow.Conversational() && flow.Message != nil {
		return c.turn(flow)
	}
	return c.form(flow)
}

// turn returns the inputs of a conversational flow: the message, and those that data parts
// name. Other data is text of the message.
func (c *content) turn(flow *schema.Flow) (*value.Record, error) {
	m := chat.Message{ID: chat.NewID(), Role: chat.User, Blocks: c.blocks}
	record, rest := value.NewRecord(""), value.NewRecord("")
	for name, v := range c.data.All() {
		if spec.VariableByID(flow.Inputs, name) != nil {
			record = record.With(name, v)
		} else {
			rest = rest.With(name, v)
		}
	}
	if rest.Len() > 0 {
		m.Blocks = append(m.Blocks, chat.Block{Type: "text", Text: string(value.JSON(rest))})
	}
	if len(m.Blocks) == 0 {
		return nil, invalid("the message has no content")
	}
	return record.With(flow.Message.ID, m), nil
}

// form returns the inputs of another flow: the members of data parts, files, and a text for
// the first input that is missing. A text that is a JSON object is data.
func (c *content) form(flow *schema.Flow) (*value.Record, error) {
	record := c.data
	for _, f := range c.files {
		v := f.inputOf(flow, record)
		if v == nil {
			return nil, fmt.Errorf("%w: flow %s has no input for a file of its type", sdk.ErrUnsupportedContentType, flow.ID())
		}
		bytes := value.NewRecord("", value.Field{Name: "base64", Value: base64.StdEncoding.EncodeToString(f.bytes)})
		record = record.With(v.ID, bytes)
	}
	text := strings.Join(c.text, "\n")
	if text == "" {
		return record, nil
	}
	if parsed, err := value.Parse(text); err == nil {
		if given, ok := parsed.(*value.Record); ok {
			for name, v := range given.All() {
				record = record.With(name, v)
			}
			return record, nil
		}
	}
	return flow.Prompt(record.With("prompt", text)), nil
}

// inputOf returns the input that a file is for: that which it names, or the first without
// a value. Its type must fit the file.
func (f *file) inputOf(flow *schema.Flow, record *value.Record) *spec.Variable {
	for _, v := range flow.Inputs {
		if _, ok := record.Get(v.ID); f.input == "" && ok || f.input != "" && f.input != v.ID || !v.Type.IsMedia() {
			continue
		}
		if _, err := mediafile.Block(v.Type.Name, f.bytes, f.declared); err == nil {
			return v
		}
	}
	return nil
}
