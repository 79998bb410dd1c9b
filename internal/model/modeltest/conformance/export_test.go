package conformance

// Ref returns the name of an item of an answer, which its text contains.
func Ref(nonce string) string { return ref{Step: 1, Item: 1, Nonce: nonce}.text("google m", "random") }

// IsContinued reports whether a text of the answer with a nonce came back as the end of another one.
func IsContinued(nonce, text, back string) bool {
	c := &conversation{origin: "google", model: "m", scenario: Scenario{Name: "random"}}
	return c.isContinued(sent{ref: ref{Nonce: nonce}, parts: []part{{kind: "text", text: back}}}, Item{Kind: "text", Text: text})
}
