package openai

import (
	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/wire"
)

// cacheMode is a breakpoint of the prompt cache, and the option that the server sets no others.
type cacheMode struct {
	Mode string `json:"mode"`
}

// explicitCache returns the mode of breakpoints that requests set.
func explicitCache() *cacheMode { return &cacheMode{"explicit"} }

// cachedText is a part of a message with the end of a beginning that is cached.
type cachedText struct {
	Type       string     `json:"type"`
	Text       string     `json:"text"`
	Breakpoint *cacheMode `json:"prompt_cache_breakpoint"`
}

// hasBreakpoints reports whether a server caches the prompts of a model up to breakpoints.
func hasBreakpoints(s *wire.Server) bool {
	return s.Own && s.Info.Known != nil && s.Info.Known.Cache.Breakpoints == catalogue.Yes
}

// marksSystem reports whether a system message ends with a breakpoint: the server sets one at the end
// of the conversation itself, which other conversations with the same system message cannot use.
// Messages that are too short are not cached.
func marksSystem(s *wire.Server, text string) bool {
	const bytesPerToken = 3
	return !s.NoCache && hasBreakpoints(s) && len(text) >= bytesPerToken*s.Info.Known.Cache.MinTokens
}
