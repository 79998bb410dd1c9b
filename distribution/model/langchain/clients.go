package langchain

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/tmc/langchaingo/llms"
	lchuggingface "github.com/tmc/langchaingo/llms/huggingface"
	lcmistral "github.com/tmc/langchaingo/llms/mistral"
	lcollama "github.com/tmc/langchaingo/llms/ollama"

	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/spec"
)

// finishReason is how an answer ended.
type finishReason struct {
	whole  bool   // whether the closing record was read
	reason string // the finish reason in OpenAI's terms
}

// ollama is a client of Ollama's own protocol. Without corrections it sends temperature
// 0 with every call, and takes a truncated stream for a short answer.
func ollama() client {
	return client{
		images:  true,
		params:  modelparams.Bridged,
		rewrite: ollamaBody,
		finish:  ollamaEnding,
		open: func(c Config, carrier *http.Client, base *url.URL) (llms.Model, error) {
			return lcollama.New(lcollama.WithModel(c.Info.Name), lcollama.WithHTTPClient(carrier), lcollama.WithServerURL(base.String()))
		},
	}
}

// ollamaBody sets the document's parameters in a request: parameters that Ollama expects
// outside of the options go there, max_tokens under Ollama's name.
func ollamaBody(body, params map[string]any) {
	options := map[string]any{}
	for name, value := range params {
		switch name {
		case "format", "keep_alive", "think":
			body[name] = value
		case "max_tokens":
			options["num_predict"] = value
		default:
			options[name] = value
		}
	}
	body["options"] = options
	if body["format"] == "" {
		delete(body, "format")
	}
	body["stream"] = body["stream"] == true // without the key Ollama streams
}

// ollamaEnding reads the last line of an answer, which has done.
func ollamaEnding(tail []byte) finishReason {
	tail = bytes.TrimSpace(tail)
	last := tail[bytes.LastIndexByte(tail, '\n')+1:]
	var closing struct {
		Done   bool   `json:"done"`
		Reason string `json:"done_reason"`
	}
	if json.Unmarshal(last, &closing) != nil {
		return finishReason{}
	}
	return finishReason{whole: closing.Done, reason: closing.Reason}
}

// huggingFace is a client of Hugging Face's text generation. It sends one prompt, so a
// conversation is written as one text.
func huggingFace() client {
	return client{
		singlePrompt: true,
		params:       modelparams.Bridged,
		rewrite: func(body, params map[string]any) {
			parameters := map[string]any{"return_full_text": false} // return the answer without the prompt
			for name, value := range params {
				if name == "max_tokens" {
					name = "max_new_tokens"
				}
				parameters[name] = value
			}
			body["parameters"] = parameters
		},
		open: func(c Config, carrier *http.Client, base *url.URL) (llms.Model, error) {
			return lchuggingface.New(lchuggingface.WithToken(c.Key), lchuggingface.WithModel(c.Info.Name),
				lchuggingface.WithURL(strings.TrimSuffix(base.String(), "/")), lchuggingface.WithHTTPClient(carrier))
		},
	}
}

// mistral is a client of Mistral's chat. It takes neither a transport nor a context,
// sends its own top_p, seed and token limit where the document has none, and its stream
// leaks if it is not read to the end. So it is never streamed, and only parameters that
// it can send are accepted.
func mistral() client {
	return client{
		ignoresContext: true,
		params:         modelparams.BridgedMistral,
		open: func(c Config, _ *http.Client, base *url.URL) (llms.Model, error) {
			if !spec.HasNoPath(base) {
				return nil, errors.New("base_url of langchaingo:mistral must have no path")
			}
			base.Path = ""
			return lcmistral.New(lcmistral.WithAPIKey(c.Key), lcmistral.WithEndpoint(base.String()), lcmistral.WithModel(c.Info.Name),
				lcmistral.WithMaxRetries(1), lcmistral.WithTimeout(c.Timeout))
		},
	}
}
