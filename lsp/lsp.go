package lsp
