package format

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strconv"
	"strings"

	"golang.org/x/net/html/charset"
)

const (
	maxMailDepth = 10    // of messages and parts in parts
	maxMailParts = 1_000 // of a message
)

// convertEML returns a message: subject, sender, recipients and date, the text, which is
// the plain one if there are alternatives, and the names of the attachments.
func convertEML(ctx context.Context, j *job) (*Result, error) {
	m := &mailWriter{writer: j.writer(ctx)}
	subject, err := m.message(j.file.Data, 1)
	if err != nil {
		return nil, err
	}
	result, err := m.result()
	if err != nil {
		return nil, err
	}
	result.Title = subject
	return result, nil
}

// convertMbox returns the messages of a mailbox, each as a page. A message that is damaged
// is its text.
func convertMbox(ctx context.Context, j *job) (*Result, error) {
	m := &mailWriter{writer: j.writer(ctx)}
	for i, data := range splitMbox(j.file.Data) {
		m.page(strconv.Itoa(i + 1))
		if m.stopped() {
			return nil, m.err
		}
		m.parts = 0
		if _, err := m.message(data, 1); err != nil {
			if m.stopped() {
				return nil, m.err
			}
			m.plainText(string(data))
		}
	}
	return m.result()
}

// splitMbox returns the messages of a mailbox. Lines that begin with ">From " in a message
// were quoted by the program that wrote it.
func splitMbox(data []byte) [][]byte {
	var messages [][]byte
	var current []byte
	blank := true
	for line := range bytes.Lines(data) {
		switch {
		case blank && bytes.HasPrefix(line, []byte("From ")):
			if len(bytes.TrimSpace(current)) > 0 {
				messages = append(messages, current)
			}
			current = nil
		case bytes.HasPrefix(bytes.TrimLeft(line, ">"), []byte("From ")) && line[0] == '>':
			current = append(current, line[1:]...)
		default:
			current = append(current, line...)
		}
		blank = len(bytes.TrimSpace(line)) == 0
	}
	if len(bytes.TrimSpace(current)) > 0 {
		messages = append(messages, current)
	}
	return messages
}

// mailWriter writes messages.
type mailWriter struct {
	*writer
	parts       int
	level       int // of messages in messages
	attachments []string
}

// message writes a message and returns its subject.
func (m *mailWriter) message(data []byte, depth int) (string, error) {
	msg, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	decoder := &mime.WordDecoder{CharsetReader: charset.NewReaderLabel}
	header := func(key string) string {
		value := msg.Header.Get(key)
		if decoded, err := decoder.DecodeHeader(value); err == nil {
			value = decoded
		}
		return collapseSpace(strings.ToValidUTF8(value, "\uFFFD"))
	}
	subject := header("Subject")
	in := new(inline)
	in.add(subject, 0, "")
	m.level++
	defer func() { m.level-- }()
	m.heading(min(m.level, 6), in)
	head := new(inline)
	for _, key := range []string{"From", "To", "Cc", "Date"} {
		if value := header(key); value != "" {
			if len(head.runs) > 0 {
				head.add(lineBreak, 0, "")
			}
			head.add(key+": "+value, 0, "")
		}
	}
	m.paragraph(head)
	outer := m.attachments
	m.attachments = nil
	err = m.part(mailPart{header: msg.Header.Get, body: msg.Body}, depth)
	if len(m.attachments) > 0 {
		m.plainParagraph("Attachments:")
		for i, name := range m.attachments {
			item := new(inline)
			item.add(name, 0, "")
			m.listItem(0, item, i == 0)
		}
	}
	m.attachments = outer
	return subject, err
}

// mailPart is a part of a message.
type mailPart struct {
	header func(key string) string
	body   io.Reader
}

// part writes a part of a message, or records it as an attachment.
func (m *mailWriter) part(p mailPart, depth int) error {
	if m.parts++; m.parts > maxMailParts || depth > maxMailDepth || m.stopped() {
		return m.err
	}
	kind, params, err := mime.ParseMediaType(p.header("Content-Type"))
	if err != nil && kind == "" {
		kind, params = "text/plain", nil
	}
	if strings.HasPrefix(kind, "multipart/") {
		return m.multipart(kind, params["boundary"], p.body, depth)
	}
	data, err := io.ReadAll(decodeTransfer(p.header("Content-Transfer-Encoding"), p.body))
	if err != nil && len(data) == 0 {
		return err
	}
	disposition, dispositionParams, _ := mime.ParseMediaType(p.header("Content-Disposition"))
	name := dispositionParams["filename"]
	if name == "" {
		name = params["name"]
	}
	switch {
	case kind == "message/rfc822":
		_, err := m.message(data, depth+1)
		return err
	case disposition == "attachment" || !strings.HasPrefix(kind, "text/"):
		m.attach(name, kind, len(data))
		return nil
	}
	text, err := toUTF8(data, params["charset"])
	if err != nil { // an unknown charset
		text, err = toUTF8(data, "")
	}
	if err != nil { // a few null characters
		text, err = toUTF8(bytes.ReplaceAll(data, []byte{0}, nil), "")
	}
	if err != nil {
		m.attach(name, kind, len(data))
		return nil //nolint:nilerr // a part that cannot be read is listed as an attachment
	}
	if kind == "text/html" {
		_, err := writePage(m.writer, text, pageOptions{})
		return err
	}
	m.plainText(text)
	return m.err
}

// attach records an attachment.
func (m *mailWriter) attach(name, kind string, size int) {
	decoder := &mime.WordDecoder{CharsetReader: charset.NewReaderLabel}
	if decoded, err := decoder.DecodeHeader(name); err == nil {
		name = decoded
	}
	if name = collapseSpace(strings.ToValidUTF8(name, "\uFFFD")); name == "" {
		name = "without a name"
	}
	m.attachments = append(m.attachments, fmt.Sprintf("%s (%s, %d bytes)", name, kind, size))
}

// plainText writes text with its line breaks, as it is.
func (m *mailWriter) plainText(text string) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	m.separate()
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		m.line(strings.TrimRight(line, " \t\r"))
	}
}

// multipart writes the parts of a part. Of alternatives it writes the plain text, or else
// the last one that is text.
func (m *mailWriter) multipart(kind, boundary string, body io.Reader, depth int) error {
	var alternatives []mailPart
	var bodies [][]byte
	for r := multipart.NewReader(body, boundary); ; {
		next, err := r.NextRawPart()
		if err != nil { // the end, or a message that was cut off
			break
		}
		if kind != "multipart/alternative" {
			if err := m.part(mailPart{header: next.Header.Get, body: next}, depth+1); err != nil {
				return err
			}
			continue
		}
		data, err := io.ReadAll(next)
		if err != nil && len(data) == 0 {
			break
		}
		alternatives = append(alternatives, mailPart{header: next.Header.Get})
		if bodies = append(bodies, data); len(bodies) > maxMailParts {
			break
		}
	}
	if len(alternatives) == 0 {
		return nil
	}
	best := len(alternatives) - 1
	for i, p := range alternatives {
		if kind, _, _ := mime.ParseMediaType(p.header("Content-Type")); kind == "text/plain" && len(bytes.TrimSpace(bodies[i])) > 0 {
			best = i
		}
	}
	return m.part(mailPart{header: alternatives[best].header, body: bytes.NewReader(bodies[best])}, depth+1)
}

// decodeTransfer decodes the encoding of a part for the transfer.
func decodeTransfer(encoding string, body io.Reader) io.Reader {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "base64":
		return base64.NewDecoder(base64.StdEncoding, body)
	case "quoted-printable":
		return quotedprintable.NewReader(body)
	}
	return body
}
