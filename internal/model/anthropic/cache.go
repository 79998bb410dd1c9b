package anthropic

import "encoding/json"

// The lifetimes of the prompt cache.
const (
	cacheNone    = "none" // requests have no markers
	cacheDefault = "auto" // the provider's lifetime
)

// cacheMark returns the marker of the end of a part of the prompt that the provider caches, nil for
// none.
func cacheMark(lifetime string) json.RawMessage {
	mark := object{{"type", quote("ephemeral")}}
	switch lifetime {
	case cacheNone:
		return nil
	case "", cacheDefault:
	default:
		mark.setText("ttl", lifetime)
	}
	return mark.json()
}

// markCache marks the parts of a prompt that later calls begin with: the tools and the
// system message, which are the same in all calls of a step, and a conversation that goes
// on. The provider ignores markers of short prompts.
func markCache(mark json.RawMessage, system []part, tools []object, turns []turn) {
	if mark == nil {
		return
	}
	if len(system) > 0 {
		system[len(system)-1].Cache = mark
	}
	for i := len(tools) - 1; i >= 0; i-- {
		if tools[i].get("defer_loading") == nil { // a tool that is loaded later cannot have a marker
			tools[i].set("cache_control", mark)
			break
		}
	}
	if len(turns) < 2 && len(tools) == 0 {
		return
	}
	for i := len(turns) - 1; i >= 0; i-- {
		if turns[i].Role == userRole { // answers go back unchanged
			content := turns[i].Content
			content[len(content)-1].Cache = mark
			return
		}
	}
}
