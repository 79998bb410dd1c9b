package bedrock

import "github.com/qtype-dev/qtype/internal/catalogue"

// cachePoint marks the end of a part of the prompt that Bedrock caches.
type cachePoint struct {
	Type string `json:"type"`
}

func newCachePoint() *cachePoint { return &cachePoint{"default"} }

// mark adds markers to a request, after the parts that later calls begin with: the tools
// and the system message, which are the same in all calls of a step, and a conversation
// that goes on. Bedrock ignores markers of short prompts, and rejects requests with markers
// for other models; the ARN of an application inference profile does not name its model.
func (p *protocol) mark(fields map[string]any, turns []turn) {
	if !p.cache || p.Info.Known == nil || p.Info.Known.Cache.Breakpoints != catalogue.Yes {
		return
	}
	cache := p.Info.Known.Cache
	config, _ := fields["toolConfig"].(map[string]any)
	tools, _ := config["tools"].([]toolEntry)
	if cache.ToolPoints == catalogue.Yes && len(tools) > 0 {
		config["tools"] = append(tools, toolEntry{Cache: newCachePoint()})
	}
	if system, ok := fields["system"].([]block); ok {
		fields["system"] = append(system, block{Cache: newCachePoint()})
	}
	if n := len(turns); n > 1 || len(tools) > 0 && n > 0 {
		turns[n-1].Content = append(turns[n-1].Content, block{Cache: newCachePoint()})
	}
}
