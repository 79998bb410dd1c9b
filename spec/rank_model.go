package spec

import (
	"net/url"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
)

// RankModel is the model of a service that sorts search results.
type RankModel struct {
	Name   string            // the service's name of it
	Prices *catalogue.Prices // nil if they are unknown
	Window int               // tokens that it reads of a query and a text; 0 if unknown
}

// RankQueryTexts is how many texts one query has at most; more are charged as further queries, by Cohere
// and by Bedrock.
const RankQueryTexts = 100

// ChargedRanker is a step that calls the model of a service which may charge for it.
type ChargedRanker interface {
	Step
	// RankModel returns the model. It is false for a step whose calls cost nothing, or what those of the models
	// of the document cost.
	RankModel() (RankModel, bool)
	// SetCatalogue sets where the model is looked up; nil is the built-in catalogue.
	SetCatalogue(*catalogue.Catalogue)
}

// RankModel returns the model of the method.
func (s *Reranker) RankModel() (RankModel, bool) {
	row, known := LookupRankMethod(s.Method)
	if !known {
		return RankModel{}, false
	}
	args := newArguments(row.Args)
	if len(DecodeArguments(s.Args, args)) > 0 {
		return RankModel{}, false
	}
	switch a := args.(type) {
	case *CohereArgs:
		return rankModelAt(s.catalogue, "cohere", a.ModelID, a.BaseURL, row.BaseURL)
	case *JinaArgs:
		return rankModelAt(s.catalogue, "jina", a.ModelID, a.BaseURL, row.BaseURL)
	case *BedrockArgs:
		return rankModel(a.ModelID)(s.catalogue.Lookup("aws-bedrock", a.ModelID)), true
	}
	return RankModel{}, false // servers of the user, and models of the document
}

// CloudIdentity is aws if the step has no auth.
func (s *BedrockReranker) CloudIdentity() string {
	if s.Auth.To != nil {
		return ""
	}
	return awsIdentity
}

// CloudIdentity is aws for the method bedrock if the step has no auth.
func (s *Reranker) CloudIdentity() string {
	if row, _ := LookupRankMethod(s.Method); s.Auth.To != nil || !slices.Contains(row.Auths, awsIdentity) {
		return ""
	}
	return awsIdentity
}

// SetCatalogue sets where RankModel looks the model up.
func (s *Reranker) SetCatalogue(c *catalogue.Catalogue) { s.catalogue = c }

// RankModel returns the model of Bedrock.
func (s *BedrockReranker) RankModel() (RankModel, bool) {
	return rankModel(s.ModelID)(s.catalogue.Lookup("aws-bedrock", s.ModelID)), true
}

// SetCatalogue sets where RankModel looks the model up.
func (s *BedrockReranker) SetCatalogue(c *catalogue.Catalogue) { s.catalogue = c }

// rankModelAt returns a model at an address. A server of this machine charges nothing, and only rows of the user
// have prices of others than the provider's.
func rankModelAt(c *catalogue.Catalogue, provider, name, address, own string) (RankModel, bool) {
	if isOwnService(own, address) {
		return rankModel(name)(c.Lookup(provider, name)), true
	}
	made := rankModel(name)(c.LookupOwn(provider, name, address))
	u, err := url.Parse(address)
	return made, made.Prices != nil || err == nil && !isLocalHost(u.Hostname())
}

// rankModel makes a RankModel of what a catalogue has.
func rankModel(name string) func(*catalogue.Model, bool) RankModel {
	return func(known *catalogue.Model, ok bool) RankModel {
		if !ok {
			return RankModel{Name: name}
		}
		return RankModel{Name: name, Prices: known.Prices, Window: known.ContextWindow}
	}
}

// isLocalHost reports whether a name is that of this machine.
func isLocalHost(host string) bool {
	return strings.EqualFold(host, "localhost") || host == "::1" || strings.HasPrefix(host, "127.")
}
