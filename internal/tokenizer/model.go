package tokenizer

import "strings"

// EstimateMargin is how many times the tokens of an encoding a text may have with the
// tokenizer of another model: texts in six languages had at most 1.9 times the tokens of
// cl100k_base (decision 49).
const EstimateMargin = 2

// ForModel returns the name of the encoding of a model, according to OpenAI's
// published lists. exact is false if the model's tokenizer is unknown: Cl100k is
// then an estimate.
//
// The name may have a date or another suffix (gpt-4o-2024-08-06, gpt-4o:online), a
// provider as prefix (openai/gpt-4o), and be that of a fine-tuned model
// (ft:gpt-4o-mini:acme::7). Case is ignored.
func ForModel(modelID string) (encoding string, exact bool) {
	name := baseName(strings.ToLower(strings.TrimSpace(modelID)))
	for _, m := range modelFamilies {
		if rest, ok := strings.CutPrefix(name, m.name); ok && (strings.HasSuffix(m.name, ".") || endsName(rest)) {
			return m.encoding, true
		}
	}
	return Cl100k, false
}

// modelFamilies lists prefixes of model names. The first match wins, so a longer
// prefix precedes a shorter one of itself. The name must end after the prefix or
// continue with a suffix; after a full stop, with anything. So gpt-5.1 matches, and a
// gpt-4.x that is not listed does not.
var modelFamilies = [...]struct{ name, encoding string }{
	{"gpt-5", O200k},
	{"gpt-5.", O200k},
	{"gpt-4.5", O200k},
	{"gpt-4.1", O200k},
	{"gpt-4o", O200k},
	{"chatgpt-4o", O200k},
	{"o1", O200k},
	{"o3", O200k},
	{"o4", O200k},
	{"gpt-oss", O200k}, // o200k_harmony: differs only in special tokens

	{"gpt-4", Cl100k},
	{"gpt-3.5", Cl100k},
	{"gpt-35", Cl100k}, // Azure's spelling
	{"text-embedding-3", Cl100k},
	{"text-embedding-ada-002", Cl100k},
	{"davinci-002", Cl100k},
	{"babbage-002", Cl100k},

	{"text-davinci-edit", P50kEdit},
	{"code-davinci-edit", P50kEdit},
	{"text-davinci-003", P50k},
	{"text-davinci-002", P50k},
	{"code-davinci", P50k},
	{"code-cushman", P50k},
	{"davinci-codex", P50k},
	{"cushman-codex", P50k},

	{"text-davinci-001", R50k},
	{"text-curie-001", R50k},
	{"text-babbage-001", R50k},
	{"text-ada-001", R50k},
	{"text-similarity", R50k},
	{"text-search", R50k},
	{"code-search", R50k},
	{"davinci", R50k},
	{"curie", R50k},
	{"babbage", R50k},
	{"ada", R50k},
	{"gpt2", R50k},
	{"gpt-2", R50k},
}

// modelProviders lists prefixes of OpenAI's model names, followed by a slash, a colon
// or a full stop. Other providers may use the same names for other models.
var modelProviders = [...]string{"openrouter", "litellm", "github", "azure_ai", "azure", "openai", "ft"}

// baseName removes provider prefixes.
func baseName(name string) string {
	for {
		previous := name
		for _, p := range modelProviders {
			if rest, ok := strings.CutPrefix(name, p); ok && rest != "" && strings.ContainsRune("/:.", rune(rest[0])) {
				name = rest[1:]
			}
		}
		if name == previous {
			return name
		}
	}
}

// endsName reports whether the name of a family ends before rest.
func endsName(rest string) bool {
	return rest == "" || strings.ContainsRune("-:@", rune(rest[0]))
}
