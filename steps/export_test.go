package steps

// FactSchema is the form of the answer of a model that extracts facts.
const FactSchema = factSchema
