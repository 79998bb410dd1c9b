// Package author has the commands of qtype for those who write documents: they create, check, format,
// compare, draw and convert documents, and serve editors and coding assistants. None of them runs a flow but qtype mcp --app.
package author
