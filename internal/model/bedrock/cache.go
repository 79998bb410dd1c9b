package bedrock

import "github.com/qtype-dev/qtype/internal/catalogue"

// cachePoint marks the end of a part of the prompt that Bedrock caches.
type cachePoint struct {
	Type     string `json:"type"`
	Lifetime string `json:"ttl,omitempty"` // 5m or 1h; empty for Bedrock's, which is five minutes
}

// mark adds markers to a request, after the parts that later calls begin with: the tools
// and the system message, which are the same in all calls of a step, and a conversation
// that goes on. Bedrock ignores markers of short prompts, and rejects requests with markers
// for other models; the ARN of an application inference profile does not name its model.
// A request whose only tool is the form of the answer has no marker after it.
func (p *protocol) mark(fields map[string]any, turns []turn, forced bool) {
	if p.cache == cacheNone || p.Info.Known == nil || p.Info.Known.Cache.Breakpoints != catalogue.Yes {
		return
	}
	point := &cachePoint{Type: "default"}
	if p.cache != cacheDefault {
		point.Lifetime = p.cache
	}
	config, _ := fields["toolConfig"].(map[string]any)
	tools, _ := config["tools"].([]toolEntry)
	if p.Info.Known.Cache.ToolPoints == catalogue.Yes && len(tools) > 0 && !forced {
		config["tools"] = append(tools, toolEntry{Cache: point})
	}
	if system, ok := fields["system"].([]block); ok {
		fields["system"] = append(system, block{Cache: point})
	}
	if n := len(turns); n > 1 || len(tools) > 0 && !forced && n > 0 {
		turns[n-1].Content = append(turns[n-1].Content, block{Cache: point})
	}
}
