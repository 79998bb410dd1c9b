package mediafile_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/mediafile"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// TestSource_Messages loads messages of callers, who name no files: their media are checked as
// others are.
func TestSource_Messages(t *testing.T) {
	image := func(content string) string {
		return `{"role": "user", "blocks": [{"type": "text", "content": "look"}, {"type": "image", "content": ` + content + `}]}`
	}
	for name, c := range map[string]struct{ message, want string }{
		"base64":          {image(`{"base64": "` + png64 + `"}`), ""},
		"data URL":        {image(`"data:image/png;base64,` + png64 + `"`), ""},
		"bucket":          {image(`{"url": "gs://bucket/cat.png"}`), "blocks[1].content: gs://bucket/cat.png: files cannot be named here"},
		"bucket of AWS":   {image(`{"url": "s3://bucket/cat.png"}`), "cannot be named here"},
		"metadata":        {image(`{"url": "http://169.254.169.254/latest/x.png"}`), "cannot be named here"},
		"public":          {image(`{"url": "https://example.com/cat.png"}`), "cannot be named here"},
		"path":            {image(`"/etc/cat.png"`), "cannot be named here"},
		"no image":        {image(`{"base64": "PGh0bWw+"}`), "blocks[1].content: "},
		"text":            {image(`"hello there"`), "blocks[1].content: "},
		"URL of a URL":    {image(`{"url": "data:text/html,x"}`), "blocks[1].content: "},
		"declared type":   {`{"role": "user", "blocks": [{"type": "image", "mime_type": "text/html", "content": {"base64": "` + png64 + `"}}]}`, "blocks[0].mime_type: text/html is not a media type of type image"},
		"system":          {strings.Replace(image(`{"base64": "`+png64+`"}`), "user", "system", 1), "role system has texts only"},
		"reasoning":       {`{"role": "assistant", "blocks": [{"type": "reasoning", "content": "x"}]}`, `blocks[0].type: "reasoning" is not a type of block`},
		"item":            {`{"role": "assistant", "blocks": [{"type": "item", "content": "x", "origin": {"api": "x"}}]}`, `blocks[0]: no field "origin"`},
		"origin":          {`{"role": "user", "origin": "x", "blocks": []}`, `no field "origin"`},
		"unknown role":    {`{"role": "root", "blocks": []}`, "unknown role"},
		"blocks no list":  {`{"role": "user", "blocks": 3}`, "list"},
		"block no object": {`{"role": "user", "blocks": [3]}`, "blocks[0]"},
		"content missing": {`{"role": "user", "blocks": [{"type": "image"}]}`, "blocks[0].content"},
	} {
		for form, raw := range map[string]any{"value": parse(t, c.message), "cell": value.ParseCell(c.message)} {
			loaded, err := (&mediafile.Source{}).Load(t.Context(), spec.Type{Name: "ChatMessage"}, raw)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s as a %s: got %v, want %s", name, form, err, c.want)
				}
				continue
			}
			if m, ok := loaded.(chat.Message); !ok || err != nil || string(m.Blocks[1].Data) != png || m.Blocks[0].Text != "look" {
				t.Errorf("%s as a %s: got %v, %v", name, form, loaded, err)
			}
		}
	}
}

// TestSource_FilesOfMessages loads a message of a row that names a file next to its own.
func TestSource_FilesOfMessages(t *testing.T) {
	raw := parse(t, `[{"role": "user", "blocks": [{"type": "image", "content": {"path": "cat.png"}}]}]`)
	loaded, err := (&mediafile.Source{Base: folder(t)}).Load(t.Context(), typ(t, "list[ChatMessage]"), raw)
	if list, ok := loaded.([]any); !ok || err != nil || string(list[0].(chat.Message).Blocks[0].Data) != png {
		t.Errorf("got %v, %v", loaded, err)
	}
}

// parse returns a JSON text as a value.
func parse(t *testing.T, text string) any {
	t.Helper()
	v, err := value.Parse(text)
	if err != nil || !json.Valid([]byte(text)) {
		t.Fatal(err)
	}
	return v
}
