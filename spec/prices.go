package spec

import (
	"net/url"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
)

// CallPrices returns the declared prices, or the catalogue's prices for the service that the
// model calls; nil if there are none.
func (m *Model) CallPrices() *catalogue.Prices {
	prices := m.listedPrices()
	if prices == nil || m.Provider != "gcp-vertex" || !strings.Contains(strings.ToLower(m.Name()), "gemini") {
		return prices
	}
	// Of Gemini in Vertex AI: "the discounts for cache and batch don't stack. The 90% cache hit discount takes precedence over the
	// batch discount" (docs.cloud.google.com/gemini-enterprise-agent-platform/models/capabilities/batch-inference). Those of Claude there
	// stack, as at Anthropic, and the price list of the Gemini API has a rate for each model: the catalogue has both.
	made := *prices
	made.CacheFirst = true
	return &made
}

// listedPrices returns the declared prices, or those of the catalogue; nil if they are not known.
func (m *Model) listedPrices() *catalogue.Prices {
	if m.Prices != nil {
		return m.Prices.rates()
	}
	if known, ok := m.Known(); ok {
		return known.Prices
	}
	return nil
}

// PriceRegion returns the region that the calls of a server are charged for, by the names of
// catalogue.Prices.Uplifts; empty for none. An empty endpoint is the one that the document has.
func (m *Model) PriceRegion(endpoint string) string {
	if endpoint == "" {
		endpoint = m.address()
	}
	host := endpoint
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		host = u.Hostname()
	}
	switch m.Provider {
	case "openai":
		switch region, ok := strings.CutSuffix(strings.ToLower(host), ".api.openai.com"); {
		case !ok:
		case region == "us":
			return catalogue.InUS
		default: // eu, au, ca, gb, in, jp, kr, …: developers.openai.com/api/docs/guides/data-residency has one surcharge for all
			return catalogue.InEU
		}
	case "anthropic": // the default is a setting of the account, which answers name
		if geo, _ := m.InferenceParams["inference_geo"].(string); geo == catalogue.InUS {
			return geo
		}
	case "gcp-vertex":
		if account, ok := m.Auth.To.(*VertexAuth); host == "" && ok && account.Region == "global" || strings.HasPrefix(host, "aiplatform.") {
			return ""
		}
		return catalogue.Regional
	}
	return ""
}

// HasListPrices reports whether the cost of the model is computed by prices of the built-in
// catalogue.
func (m *Model) HasListPrices() bool {
	return m.Prices == nil && m.CallPrices() != nil && !m.HasUserPrices()
}

// HasUserPrices reports whether the cost of the model is computed by prices of a row of the user, in
// models.yaml.
func (m *Model) HasUserPrices() bool {
	known, ok := m.Known()
	return m.Prices == nil && ok && known.Prices != nil && known.PricedByUser
}

// rates converts declared prices. They hold for all lifetimes of the prompt cache.
func (p *Prices) rates() *catalogue.Prices {
	rates := catalogue.Rates{Input: &p.Input, Output: &p.Output, CachedInput: p.CachedInput}
	rates.CacheWrite5m, rates.CacheWrite30m, rates.CacheWrite1h, rates.CacheWrite12h = p.CacheWrite, p.CacheWrite, p.CacheWrite, p.CacheWrite
	return &catalogue.Prices{TierRates: catalogue.TierRates{Rates: rates}}
}
