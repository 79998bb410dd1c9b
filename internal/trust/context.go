package trust

import "context"

type policyKey struct{}

// With returns a context of what is done for a document.
func With(ctx context.Context, p *Policy) context.Context {
	if p == nil {
		return ctx
	}
	return context.WithValue(ctx, policyKey{}, p)
}

// ForUser returns a context of what the user does with the inputs of a document, whose
// files the user has named.
func ForUser(ctx context.Context) context.Context {
	if From(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, policyKey{}, (*Policy)(nil))
}

// From returns the policy of the document for which something is done; nil if there is
// none, which allows everything.
func From(ctx context.Context) *Policy {
	p, _ := ctx.Value(policyKey{}).(*Policy)
	return p
}
