package spec

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// EmbeddedFile returns the file of an embedded index whose argument path is given, or empty. The name
// of the index is part of the default, so its signs are escaped.
func (x *IndexBase) EmbeddedFile(path string) string {
	if path != "" {
		return path
	}
	return filepath.Join(".qtype/indexes", url.PathEscape(x.Name)+".db")
}

// EmbeddedIndexArguments are the `args` of an index of the store embedded.
type EmbeddedIndexArguments struct {
	// Path is the file of the index; by default one below .qtype/indexes.
	Path string `yaml:"path"`
	// Quantization sets how vectors are compared: int8 (as numbers of 8 bits, the best results by the exact vectors) or none.
	Quantization string `yaml:"quantization" default:"int8"`
	// Approximate sets when only the nearest clusters are compared: auto (from 200,000 vectors on), never or always.
	Approximate string `yaml:"approximate" default:"auto"`
	// Probes is the number of clusters that a search compares; more are slower and find more.
	Probes int `yaml:"probes"`
	// MemoryLimit is the size of the vectors in memory in MB; a search reads the others from the file.
	MemoryLimit int `yaml:"memory_limit" default:"1024"`
	// Stemming sets whether full-text search ignores the endings of words: auto (by the language of each entry), those of one language, such as german, or none.
	Stemming string `yaml:"stemming" default:"auto"`
}

// CheckArguments reports values that are not allowed.
func (a *EmbeddedIndexArguments) CheckArguments() []*ArgumentError {
	problems := slices.Concat(
		checkChoice("quantization", a.Quantization, "int8", "none"),
		checkChoice("approximate", a.Approximate, "auto", "never", "always"),
		checkChoice("stemming", a.Stemming, stemmingChoices()...))
	if a.Probes < 0 {
		problems = append(problems, &ArgumentError{Key: "probes", Message: "expected 0, for a share of the clusters, or more"})
	}
	if a.MemoryLimit < 0 {
		problems = append(problems, &ArgumentError{Key: "memory_limit", Message: "expected 0, for no limit, or more"})
	}
	return problems
}

// stemmingChoices are the values of stemming: auto, none and the languages whose endings are known.
func stemmingChoices() []string {
	return []string{"auto", "none", "english", "danish", "dutch", "finnish", "french", "german", "hungarian", "italian", "norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "turkish"}
}

// EmbeddedQueryArguments are the `query_args` of a search in an embedded index.
type EmbeddedQueryArguments struct {
	// Type is best_fields, where the best field counts, most_fields, where all count, phrase, phrase_prefix or bool_prefix.
	Type string `yaml:"type" default:"best_fields"`
	// Fields are the fields to search, with * and boosts such as title^3; by default all.
	Fields []string `yaml:"fields"`
	// Operator is or, or and if all words are required in a field.
	Operator string `yaml:"operator" default:"or"`
	// Fuzziness is AUTO, or 0, 1 or 2: the typing errors in words that no document has.
	Fuzziness any `yaml:"fuzziness"`
	// TieBreaker is the weight of the fields other than the best one.
	TieBreaker float64 `yaml:"tie_breaker"`
}

// CheckArguments reports values that are not allowed.
func (a *EmbeddedQueryArguments) CheckArguments() []*ArgumentError {
	problems := slices.Concat(
		checkChoice("type", a.Type, "best_fields", "most_fields", "phrase", "phrase_prefix", "bool_prefix"),
		checkChoice("operator", strings.ToLower(a.Operator), "or", "and"))
	if a.Fuzziness != nil && !slices.Contains([]string{"AUTO", "0", "1", "2"}, strings.ToUpper(fmt.Sprint(a.Fuzziness))) {
		problems = append(problems, &ArgumentError{Key: "fuzziness", Message: "expected AUTO, 0, 1 or 2"})
	}
	if !(a.TieBreaker >= 0 && a.TieBreaker <= 1) {
		problems = append(problems, &ArgumentError{Key: "tie_breaker", Message: "expected a number from 0 to 1"})
	}
	return problems
}

// checkChoice reports a value that is not empty and none of the allowed ones.
func checkChoice(key, value string, allowed ...string) []*ArgumentError {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return []*ArgumentError{{Key: key, Message: fmt.Sprintf("%q is not one of %s", value, strings.Join(allowed, ", "))}}
}
