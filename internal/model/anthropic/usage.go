package anthropic

import (
	"cmp"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
)

// usage counts tokens.
type usage struct {
	counts
	Tier   wire.Word `json:"service_tier"`
	Speed  wire.Word `json:"speed"`
	Region wire.Word `json:"inference_geo"`
	Hosted struct {
		Searches wire.Count `json:"web_search_requests"`
	} `json:"server_tool_use"`
	Iterations []struct {
		Type wire.Word `json:"type"`
		counts
	} `json:"iterations"` // of an answer that took several
}

// counts are the tokens of an answer or of an iteration. Input excludes tokens read from and
// written to the prompt cache.
type counts struct {
	Input   wire.Count `json:"input_tokens"`
	Output  wire.Count `json:"output_tokens"`
	Cached  wire.Count `json:"cache_read_input_tokens"`
	Created wire.Count `json:"cache_creation_input_tokens"`
	Writes  struct {
		Minutes wire.Count `json:"ephemeral_5m_input_tokens"`
		Hour    wire.Count `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Details struct {
		Thinking wire.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// update replaces the counts; those that a part of a stream omits do not change.
func (u *usage) update(by usage) {
	by.Input, by.Output = cmp.Or(by.Input, u.Input), cmp.Or(by.Output, u.Output)
	by.Cached, by.Created = cmp.Or(by.Cached, u.Cached), cmp.Or(by.Created, u.Created)
	by.Writes, by.Details = cmp.Or(by.Writes, u.Writes), cmp.Or(by.Details, u.Details)
	by.Tier, by.Speed, by.Hosted = cmp.Or(by.Tier, u.Tier), cmp.Or(by.Speed, u.Speed), cmp.Or(by.Hosted, u.Hosted)
	by.Region = cmp.Or(by.Region, u.Region)
	if by.Iterations == nil {
		by.Iterations = u.Iterations
	}
	*u = by
}

// total returns the tokens of the answer. The counts include all iterations but summaries of the
// conversation.
func (u *usage) total() model.Usage {
	sum := u.used(&u.counts)
	sum.Queries = int(u.Hosted.Searches)
	for _, i := range u.Iterations {
		if i.Type == stopCompaction {
			sum.Join(u.used(&i.counts))
		}
	}
	return sum
}

// used returns the tokens of the answer or of one of its iterations, with the tier and the region of the answer.
func (u *usage) used(c *counts) model.Usage {
	used := model.Usage{Input: int(c.Input + c.Cached + c.Created), Output: int(c.Output), Cached: int(c.Cached), CacheWrite: int(c.Created),
		CacheWrites: catalogue.CacheWrites{Minutes5: int(c.Writes.Minutes), Hour1: int(c.Writes.Hour)}, Reasoning: int(c.Details.Thinking)}
	switch {
	case u.Speed == "fast":
		used.Tier = catalogue.TierFast
	case u.Tier != "standard":
		used.Tier = string(u.Tier)
	}
	if u.Region == catalogue.InUS {
		used.Region = catalogue.InUS
	}
	return used
}
