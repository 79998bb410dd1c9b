package qtype

import "github.com/qtype-dev/qtype/internal/trust"

// Grants are what a user allows a document that is untrusted or sandboxed.
type Grants = trust.Grants

// RefusedError reports what a document may not do; it names the flag of the command that
// would allow it.
type RefusedError = trust.RefusedError

// WithGrants allows a document from an address, or one of WithSandbox, what g lists. OutDir
// is where files of any document are written; see docs/security.md.
func WithGrants(g Grants) Option { return func(o *options) { o.check.Grants = g } }

// WithSandbox restricts a local document as if it were from an address, except that it may
// read the files in its folder and below it.
func WithSandbox() Option { return func(o *options) { o.check.Sandbox = true } }

// WithTrust trusts a document from an address as if it were a local file, and records its
// digest: until the document or one of its includes changes, it is trusted without this
// option, too.
func WithTrust() Option { return func(o *options) { o.check.Trusted = true } }

// Policy returns what the document may reach; nil if there is no limit.
func (p *Program) Policy() *trust.Policy { return p.checked.Policy }
