package spec

// CheckAvailableIn is CheckAvailable for a language with other unions.
func CheckAvailableIn(n Node, unions []Union) *NotAvailableError {
	return checkAvailable(n, missingOf(unions))
}
