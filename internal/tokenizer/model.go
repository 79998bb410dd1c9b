package tokenizer

import "strings"

// ForModel returns the name of the encoding that a model uses, by OpenAI's
// published lists. exact is false where the model's tokenizer is not one of
// ours: a count is then an estimate, by Cl100k (reference memory.md 6).
//
// The name may have a date or another suffix (gpt-4o-2024-08-06, gpt-4o:online),
// the provider before it (openai/gpt-4o) and be that of a tuned model
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

// modelFamilies holds the beginnings of model names. The first that fits is
// taken, so a longer one stands before the shorter one that it begins with.
// After it the name ends or goes on with a suffix; after a full stop, with
// anything. So gpt-5.1 is known, and a gpt-4.x that is not listed is not.
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
	{"gpt-oss", O200k}, // o200k_harmony: the same but for special tokens

	{"gpt-4", Cl100k},
	{"gpt-3.5", Cl100k},
	{"gpt-35", Cl100k}, // as Azure writes it
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

// modelProviders are the words that may stand before a name of OpenAI's, with a
// slash, a colon or a full stop between. Under another provider's name the same
// word may be another model.
var modelProviders = [...]string{"openrouter", "litellm", "github", "azure_ai", "azure", "openai", "ft"}

// baseName returns a model's name without the providers before it.
func baseName(name string) string {
	for {
		before := name
		for _, p := range modelProviders {
			if rest, ok := strings.CutPrefix(name, p); ok && rest != "" && strings.ContainsRune("/:.", rune(rest[0])) {
				name = rest[1:]
			}
		}
		if name == before {
			return name
		}
	}
}

// endsName reports whether a family's name is complete before rest.
func endsName(rest string) bool {
	return rest == "" || strings.ContainsRune("-:@", rune(rest[0]))
}
