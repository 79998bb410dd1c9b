package chatui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/mediatype"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/chat"
)

// maxAttachment bounds a file that is attached, in bytes.
const maxAttachment = 20 << 20

// maxNames bounds the names that complete a path.
const maxNames = 200

// attach reads a file that is sent with the next message: texts as text, everything else as
// media.
func (c *Chat) attach(_ context.Context, name string) error {
	data, err := readAttachment(name)
	if err != nil {
		return fmt.Errorf("%s: cannot be attached: %w", name, terminal.Cause(err))
	}
	block := chat.Block{Type: "text", Text: fmt.Sprintf("File %s:\n\n%s", filepath.Base(name), data)}
	kind := "text"
	if !mediatype.IsText(data) {
		mime := mediatype.Detect(data)
		kind = cmp.Or(mediatype.KindOf(mime), "file")
		block = chat.Block{Type: kind, Data: data, MimeType: mime}
	}
	c.attached = append(c.attached, block)
	c.printf("%s (%s, %s) is sent with the next message\n", terminal.Clean(name), kind, textfmt.Bytes(int64(len(data))))
	return nil
}

// readAttachment reads a file of the user that is not too large.
func readAttachment(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, errors.New("it is not a file"))
	}
	data, err := io.ReadAll(io.LimitReader(file, maxAttachment+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxAttachment:
		return nil, fmt.Errorf("it is larger than %s", textfmt.Bytes(maxAttachment))
	case len(data) == 0:
		return nil, errors.New("it is empty")
	}
	return data, nil
}

// save writes the conversation to a new file.
func (c *Chat) save(ctx context.Context, name string) error {
	text, count, err := c.transcript(ctx)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // conversations may be confidential
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s exists: use the name of a new file", name)
	case err != nil:
		return fmt.Errorf("%s: cannot be written: %w", name, terminal.Cause(err))
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%s: cannot be written: %w", name, terminal.Cause(err))
	}
	c.printf("%s written to %s\n", textfmt.Count(count, "message"), terminal.Clean(name))
	return nil
}

// transcript returns the messages of the user and of the model as Markdown.
func (c *Chat) transcript(ctx context.Context) (text string, count int, err error) {
	all := c.memories()
	if len(all) == 0 {
		return "", 0, c.errNoMemory()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s, session %s\n", c.App.Spec().ID, c.name())
	for e, err := range all[0].Messages(ctx, c.Session) {
		if err != nil {
			return "", 0, err
		}
		author := map[chat.Role]string{chat.User: "You", chat.Assistant: "Assistant"}[e.Message.Role]
		content := strings.TrimSpace(e.Message.Text())
		if author == "" || content == "" {
			continue
		}
		count++
		fmt.Fprintf(&b, "\n## %s, %s\n\n%s\n", author, e.Time.Local().Format("2006-01-02 15:04"), content)
	}
	if count == 0 {
		return "", 0, errors.New("the conversation has no messages yet")
	}
	return b.String(), count, nil
}

// copyAnswer copies the last answer to the clipboard.
func (c *Chat) copyAnswer(ctx context.Context, _ string) error {
	text := ""
	if c.last != nil {
		text = c.last.answer
	}
	for _, m := range c.memories() {
		if text != "" {
			break
		}
		for e, err := range m.Messages(ctx, c.Session) {
			if err != nil {
				return err
			}
			if e.Message.Role == chat.Assistant && e.Message.Text() != "" {
				text = e.Message.Text()
			}
		}
	}
	if text == "" {
		return errors.New("there is no answer yet")
	}
	c.Screen.Copy(text)
	c.printf("%s copied, if the terminal allows programs to use the clipboard (OSC 52)\n", textfmt.Count(len([]rune(text)), "character"))
	return nil
}

// details shows the reasoning and the calls of tools of the last answer.
func (c *Chat) details(context.Context, string) error {
	if c.last == nil || c.last.details == "" {
		return errors.New("the last answer had no reasoning and called no tools; /history shows earlier ones")
	}
	c.printf("%s", c.last.details)
	return nil
}

// fileNames returns the paths that begin with a text.
func (c *Chat) fileNames(_ context.Context, typed string) []string {
	folder, begin := filepath.Split(typed)
	entries, err := os.ReadDir(cmp.Or(folder, "."))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, begin) || begin == "" && strings.HasPrefix(name, ".") || len(names) == maxNames {
			continue
		}
		if e.IsDir() {
			name += string(filepath.Separator)
		}
		names = append(names, folder+name)
	}
	slices.Sort(names)
	return names
}
