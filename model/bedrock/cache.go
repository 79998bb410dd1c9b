package bedrock

import (
	"slices"
	"strings"
)

// cachePoint marks the end of a part of the prompt that Bedrock caches.
type cachePoint struct {
	Type string `json:"type"`
}

func newCachePoint() *cachePoint { return &cachePoint{"default"} }

// markers are the parts of a prompt that a model may have markers after.
type markers struct {
	prompt bool // the system message and the messages
	tools  bool
}

// markersOf returns what may be marked for a model. Bedrock rejects requests with markers
// for other models, and the id of an inference profile does not name its model.
func markersOf(name string) markers {
	switch {
	case strings.Contains(name, "amazon.nova-"):
		return markers{prompt: true}
	case !strings.Contains(name, "anthropic.claude-"):
		return markers{}
	}
	_, version, _ := strings.Cut(name, "anthropic.claude-")
	older := slices.ContainsFunc([]string{"instant", "v2", "3-opus", "3-sonnet", "3-haiku", "3-5-sonnet"}, func(p string) bool { return strings.HasPrefix(version, p) })
	return markers{prompt: !older, tools: !older}
}

// mark adds markers to a request, after the parts that later calls begin with: the tools
// and the system message, which are the same in all calls of a step, and a conversation
// that goes on. Bedrock ignores markers of short prompts.
func (p *protocol) mark(fields map[string]any, turns []turn) {
	if !p.cache {
		return
	}
	may := markersOf(p.Info.Name)
	config, _ := fields["toolConfig"].(map[string]any)
	tools, _ := config["tools"].([]toolEntry)
	if may.tools && len(tools) > 0 {
		config["tools"] = append(tools, toolEntry{Cache: newCachePoint()})
	}
	if !may.prompt {
		return
	}
	if system, ok := fields["system"].([]block); ok {
		fields["system"] = append(system, block{Cache: newCachePoint()})
	}
	if n := len(turns); n > 1 || len(tools) > 0 && n > 0 {
		turns[n-1].Content = append(turns[n-1].Content, block{Cache: newCachePoint()})
	}
}
