package value

import "strings"

// AnswerText returns what a model answered without what is around it: a byte order mark,
// reasoning up to </think>, and a code fence around the whole rest.
func AnswerText(text string) string {
	const bom = "\ufeff"
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), bom))
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		return text // which may have any text in its strings
	}
	if thought, after, found := strings.Cut(text, "</think>"); found && (strings.HasPrefix(thought, "<think>") || !strings.Contains(thought, "<think>")) {
		text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(after), bom))
	}
	inside, fenced := strings.CutPrefix(text, "```")
	if inside, closed := strings.CutSuffix(inside, "```"); fenced && closed && !strings.Contains(inside, "```") {
		label, body, _ := strings.Cut(inside, "\n")
		if strings.ContainsAny(label, "{<[") { // no label: the answer begins on the line of the fence
			body = inside
		}
		text = strings.TrimSpace(body)
	}
	return text
}
