package playground

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// An Example is a document that the page offers to start from.
type Example struct {
	Name       string `json:"name"`
	Title      string `json:"title"`
	Text       string `json:"text"`
	Transcript string `json:"transcript"` // for its memories
}

// offered are the examples of the page by folder, the first one is shown first. Others
// need files that a page does not have.
var offered = []string{"chat", "context", "routing", "support_inbox", "agent_tools", "approval"}

// Examples returns the examples of the page from the folder of examples.
func Examples(files fs.FS) ([]Example, error) {
	var all []Example
	for _, name := range offered {
		text, err := fs.ReadFile(files, path.Join(name, "app.qtype.yaml"))
		if err != nil {
			return nil, fmt.Errorf("read an example: %w", err)
		}
		all = append(all, Example{Name: name, Title: strings.ReplaceAll(name, "_", " "), Text: withoutSchema(string(text)), Transcript: transcript})
	}
	return all, nil
}

// withoutSchema removes the line that names the schema for editors.
func withoutSchema(text string) string {
	if first, rest, _ := strings.Cut(text, "\n"); strings.HasPrefix(first, "# yaml-language-server:") {
		return strings.TrimPrefix(rest, "#\n")
	}
	return text
}

// transcript is the conversation that is replayed until the user writes another one.
var transcript = strings.Join([]string{
	`{"role": "user", "content": "Good morning. The rear brake of my bicycle squeals on every descent."}`,
	`{"role": "assistant", "content": "Good morning! Does it squeal only when the rim is wet, or always?"}`,
	`{"role": "user", "content": "Always, and since last week the lever comes close to the handlebar."}`,
	`{"role": "assistant", "content": "Then the pads are worn and the cable is stretched. Both are quickly replaced."}`,
	`{"role": "user", "content": "Could you also look at the lamp? It flickers on cobblestones."}`,
	`{"role": "assistant", "content": "Of course. The connector at the hub is often loose, we clean and fasten it."}`,
	`{"role": "user", "content": "I need it back before Friday evening. On Saturday we leave for a tour along the river, four days with luggage."}`,
	`{"role": "assistant", "content": "It is ready on Thursday at 16:00. Shall we also check the rack and its screws before the tour?"}`,
	`{"role": "user", "content": "Yes, please. What does everything cost together?"}`,
	`{"role": "assistant", "content": "Pads and cable are 38 euros, the lamp 12, and the check of the rack is free."}`,
	`{"role": "user", "content": "Good. Please write me a message when it is ready."}`,
}, "\n") + "\n"
