package catalogue

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/spec/diag"
)

// spelling is a possible name of a model in the list, and what the name adds.
type spelling struct {
	provider  string // empty for any
	name      string // lower case
	profile   string // prefix of Bedrock's inference profile
	fineTuned bool
	unpriced  bool // the price is that of another service
}

// publishers are the providers whose rows a name without a provider means, the first ones
// first, by the names that gateways give them.
var publishers = [...]struct {
	provider string
	names    []string
}{
	{"openai", nil}, {"anthropic", nil}, {"google-ai", []string{"google", "gemini"}}, {"mistral", []string{"mistralai"}},
	{"deepseek", []string{"deepseek-ai"}}, {"moonshotai", []string{"moonshot"}}, {"zai", []string{"z-ai", "zai-org"}}, {"minimax", []string{"minimaxai"}}, {"qwen", []string{"alibaba"}},
	{"xai", []string{"x-ai"}}, {"cohere", nil}, {"meta", []string{"meta-llama"}}, {"voyage", []string{"voyageai"}}, {"jina", []string{"jinaai"}}, {"groq", nil},
	{"azure-openai", []string{"azure"}}, {"gcp-vertex", []string{"vertex_ai"}}, {"aws-bedrock", []string{"bedrock"}}, {"bedrock-mantle", nil},
}

// rank returns the place of a provider in publishers.
func rank(provider string) int {
	for i, p := range publishers {
		if p.provider == provider {
			return i
		}
	}
	return len(publishers)
}

// publisherOf returns the provider that a gateway calls by a name, empty for none.
func publisherOf(name string) string {
	for _, p := range publishers {
		if p.provider == name || slices.Contains(p.names, name) {
			return p.provider
		}
	}
	return ""
}

// spellings lists the spellings that a name may have at a provider, the exact one first.
func spellings(provider, name string) []spelling {
	s := spelling{provider: provider, name: strings.ToLower(strings.TrimSpace(name))}
	switch provider {
	case "":
		return gatewaySpellings(s)
	case "aws-bedrock":
		return bedrockSpellings(s)
	case "google-ai":
		s.name = strings.TrimPrefix(publisherPath().ReplaceAllString(s.name, ""), "models/")
	case "gcp-vertex":
		return vertexSpellings(s)
	case "azure-openai":
		return append(datedSpellings(s), elsewhere("openai", s.name)...)
	}
	return datedSpellings(s)
}

// elsewhere lists the spellings of a name at another provider, whose prices do not hold.
func elsewhere(provider, name string) []spelling {
	all := spellings(provider, name)
	for i := range all {
		all[i].unpriced = true
	}
	return all
}

// datedSpellings adds the names without a date or -latest, and the base of a fine-tuned model.
func datedSpellings(s spelling) []spelling {
	all := []spelling{s}
	if base, ok := fineTunedBase(s.name); ok {
		s.name, s.fineTuned = base, true
		all = append(all, s)
	}
	if name, ok := withoutDate(s.name); ok {
		s.name = name
		all = append(all, s)
	}
	return all
}

// fineTunedBase returns the base of OpenAI's fine-tuned models, as in ft:gpt-4.1:acme::7,
// and of Azure's, as in gpt-4.1-2025-04-14.ft-7.
func fineTunedBase(name string) (string, bool) {
	if rest, ok := strings.CutPrefix(name, "ft:"); ok {
		base, _, _ := strings.Cut(rest, ":")
		return base, true
	}
	base, _, ok := strings.Cut(name, ".ft-")
	return base, ok
}

// dated is a name with a date: gpt-5.5-2026-04-23, claude-haiku-4-5-20251001.
var dated = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(.+)-(\d{4}-\d{2}-\d{2}|\d{8})$`)
})

// withoutDate removes the date of a snapshot, or -latest. Other suffixes are other models.
func withoutDate(name string) (string, bool) {
	if base, ok := strings.CutSuffix(name, "-latest"); ok {
		return base, true
	}
	found := dated().FindStringSubmatch(name)
	if found == nil {
		return "", false
	}
	return found[1], isRelease(found[2])
}

// isRelease reports whether a text is a day on which a model may have been released that the
// catalogue has: not one after the day on which it was collected.
func isRelease(text string) bool {
	day, err := time.Parse("20060102", strings.ReplaceAll(text, "-", ""))
	return err == nil && day.Year() >= firstYear && day.Format(time.DateOnly) <= Date
}

// firstYear is that of the oldest models of the catalogue.
const firstYear = 2022

// gatewaySpellings are those of a name without a provider: publisher/name, or name. What a
// gateway charges is not known.
func gatewaySpellings(s spelling) []spelling {
	s.unpriced = true
	all := datedSpellings(s)
	for _, cloud := range []string{"aws-bedrock", "gcp-vertex"} { // with their prefixes and versions
		all = append(all, elsewhere(cloud, s.name)...)
	}
	rest := s.name
	for {
		publisher, name, ok := strings.Cut(rest, "/")
		if !ok {
			return all
		}
		rest = name
		if p := publisherOf(publisher); p != "" {
			all = append(all, elsewhere(p, name)...)
			if p == "anthropic" { // OpenRouter writes claude-opus-4.8
				all = append(all, elsewhere(p, strings.ReplaceAll(name, ".", "-"))...)
			}
		}
		all = append(all, datedSpellings(spelling{name: name, unpriced: true})...)
	}
}

// publisherPath is what precedes the name of a Google model in the path of Vertex AI.
var publisherPath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:projects/[^/]+/locations/[^/]+/)?publishers/google/`)
})

// vertexSpellings are those of publishers/anthropic/models/NAME@VERSION. Google's models on
// Vertex have the limits of the Gemini API, and no listed prices.
func vertexSpellings(s spelling) []spelling {
	s.name = s.name[strings.LastIndexByte(s.name, '/')+1:]
	all := []spelling{s}
	if base, version, ok := strings.Cut(s.name, "@"); ok && (version == "default" || version == "latest" || isRelease(version)) {
		s.name = base
		all = append(all, s)
	}
	return append(all, elsewhere("google-ai", s.name)...)
}

// regions are the prefixes of inference profiles.
var regions = [...]string{"global", "us-gov", "us", "eu", "apac", "jp", "au", "ca", "sa"}

// bedrockVersion is the end of Bedrock's ids: -v1, -v1:0, -v2:0:200k.
var bedrockVersion = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`-v(\d+)(:\d+)?(:\d+k)?$`)
})

// arn is the ARN of a model or of an inference profile that Bedrock defines.
var arn = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^arn:[^:]*:bedrock:[^:]*:[^:]*:(?:foundation-model|inference-profile)/(.+)$`)
})

// bedrockSpellings are those of ids and ARNs of models and inference profiles.
func bedrockSpellings(s spelling) []spelling {
	if strings.HasPrefix(s.name, "arn:") {
		found := arn().FindStringSubmatch(s.name)
		if found == nil {
			return nil // an application-inference-profile and the like do not name their model
		}
		s.name = found[1]
	}
	all := []spelling{s}
	for _, region := range regions {
		if rest, ok := strings.CutPrefix(s.name, region+"."); ok {
			s.name, s.profile = rest, region
			all = append(all, s)
			break
		}
	}
	version := bedrockVersion().FindStringSubmatchIndex(s.name)
	if version == nil {
		return all
	}
	base, number := s.name[:version[0]], s.name[version[2]:version[3]]
	s.name = base + "-v" + number + ":0"
	all = append(all, s)
	s.name = base + "-v" + number
	all = append(all, s)
	if number == "1" {
		s.name = base
		all = append(all, s)
	}
	return all
}

// apply returns the model with what the spelling adds to it.
func (s spelling) apply(m *Model) *Model {
	if s == (spelling{provider: s.provider, name: s.name}) {
		return m
	}
	made := *m
	made.Profile, made.FineTuned = s.profile, s.fineTuned
	if s.fineTuned || s.unpriced {
		made.Prices = nil
	}
	if s.profile != "" && made.Prices != nil {
		profile, ok := m.Profiles[s.profile]
		if !ok {
			made.Prices = nil
			return &made
		}
		prices := m.Prices.rebased(Rates{Input: &profile.Input, Output: &profile.Output})
		made.Prices = &prices
	}
	return &made
}

// Nearest lists at most three models of a provider by their similarity to an unknown
// name, the most similar first; none if no name is like it. An empty provider is any.
func (c *Catalogue) Nearest(provider, name string) []string {
	var candidates, names []string
	for _, m := range c.All() {
		if (provider == "" || m.Provider == provider) && m.Status != Retired {
			candidates = append(candidates, m.ID)
		}
	}
	for len(names) < 3 {
		near := diag.Nearest(name, candidates)
		if near == "" {
			break
		}
		names = append(names, near)
		candidates = slices.DeleteFunc(candidates, func(c string) bool { return c == near })
	}
	return names
}
