package spec

// HandBackTool is the name of the tool by which an Agent hands a conversation back.
const HandBackTool = "hand_back"

// HandoffVariables begins the names of the variables of a session that say which flow has the conversation.
// They are not for models.
const HandoffVariables = "handoff."

// HandoffTool returns the name of the tool by which an Agent transfers a conversation.
func HandoffTool(f *Flow) string { return "transfer_to_" + f.ID }

// HandoffProblem returns why an Agent cannot transfer a conversation to a flow; empty if
// it can. Unlinked variables are not a problem.
func HandoffProblem(f *Flow) string {
	switch {
	case len(f.Inputs) == 0:
		return "it has no input for the question"
	case !isMessageOrText(f.Inputs[0].To):
		return "its first input must be a text or a ChatMessage: it is the question"
	case len(f.Outputs) != 1:
		return "it must have exactly one output, which is the answer"
	case !isMessageOrText(f.Outputs[0].To):
		return "its output must be a text or a ChatMessage: it is the answer"
	}
	for _, ref := range f.Inputs[1:] {
		if ref.To != nil && !ref.To.IsOptional() {
			return "its input " + ref.ID + " gets no value: all inputs but the first must be optional"
		}
	}
	for s := range f.Plan().All() {
		if s.OffersCallerTools() {
			return ""
		}
	}
	return "no Agent in it could hand the conversation back"
}

// isMessageOrText reports whether a variable can have a message of a conversation; an
// unlinked one may.
func isMessageOrText(v *Variable) bool {
	return v == nil || v.Type.Is("text") || v.Type.Is("ChatMessage")
}
