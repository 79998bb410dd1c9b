package spec

import "github.com/qtype-dev/qtype/internal/catalogue"

// CallPrices returns the declared prices, or the catalogue's prices for the service that the
// model calls; nil if there are none.
func (m *Model) CallPrices() *catalogue.Prices {
	if m.Prices != nil {
		return m.Prices.rates()
	}
	if known, ok := m.Known(); ok {
		return known.Prices
	}
	return nil
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
