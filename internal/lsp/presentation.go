package lsp

import (
	"sync"

	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/spec"
)

// presentation is how editors show entities of a kind.
type presentation struct {
	symbol     int // protocol.SymbolKind…
	completion int // protocol.CompletionItemKind…
	token      int // index in tokenTypes
}

// kindPresentations returns the presentation of each kind of entity. Kinds that are
// not listed have the default one.
var kindPresentations = sync.OnceValue(func() map[spec.Kind]presentation {
	return map[spec.Kind]presentation{
		spec.KindApplication: {protocol.SymbolKindModule, protocol.CompletionItemKindReference, tokenNamespace},
		spec.KindFlow:        {protocol.SymbolKindFunction, protocol.CompletionItemKindFunction, tokenFunction},
		spec.KindTool:        {protocol.SymbolKindFunction, protocol.CompletionItemKindFunction, tokenFunction},
		spec.KindStep:        {protocol.SymbolKindMethod, protocol.CompletionItemKindReference, tokenFunction},
		spec.KindVariable:    {protocol.SymbolKindVariable, protocol.CompletionItemKindVariable, tokenVariable},
		spec.KindType:        {protocol.SymbolKindStruct, protocol.CompletionItemKindStruct, tokenType},
		spec.KindAuth:        {protocol.SymbolKindKey, protocol.CompletionItemKindReference, tokenNamespace},
		spec.KindMemory:      {protocol.SymbolKindField, protocol.CompletionItemKindReference, tokenNamespace},
		spec.KindModel:       {protocol.SymbolKindObject, protocol.CompletionItemKindModule, tokenNamespace},
	}
})

// presentationOf returns the presentation of a kind.
func presentationOf(kind spec.Kind) presentation {
	if p, ok := kindPresentations()[kind]; ok {
		return p
	}
	return presentation{protocol.SymbolKindObject, protocol.CompletionItemKindReference, tokenNamespace}
}
