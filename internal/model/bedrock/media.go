package bedrock

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/spec/chat"
)

// media is an image, a document or a video.
type media struct {
	Format string `json:"format"`
	Name   string `json:"name,omitempty"` // of a document
	Source source `json:"source"`
}

// source is the data of media or where they are.
type source struct {
	Bytes []byte    `json:"bytes,omitempty"` // as base64
	S3    *location `json:"s3Location,omitempty"`
}

type location struct {
	URI string `json:"uri"`
}

// encodeBlock encodes a text, an image, a document or a video. The number of
// documents is increased by one for a document: their names must be different.
func encodeBlock(b chat.Block, documents *int) (block, error) {
	switch b.Type {
	case wire.PassageType:
		return passageBlock(b.Text)
	case "image", "file", "video":
	default:
		if b.Media() {
			return block{}, wire.UnsupportedContent(b, "aws-bedrock")
		}
		return textBlock(b.Text), nil
	}
	from := source{Bytes: b.Data}
	if !b.Media() {
		if !strings.HasPrefix(b.Text, "s3://") {
			return block{}, fmt.Errorf("%s must be bytes or an s3:// address for aws-bedrock, not a URL", b.Type)
		}
		from = source{S3: &location{URI: b.Text}}
	}
	m := &media{Format: formatOf(b), Source: from}
	if m.Format == "" {
		return block{}, wire.UnsupportedContent(b, "aws-bedrock")
	}
	switch b.Type {
	case "image":
		return block{Image: m}, nil
	case "video":
		return block{Video: m}, nil
	}
	*documents++
	m.Name = fmt.Sprintf("document %d", *documents)
	return block{Document: m}, nil
}

// formatOf returns Bedrock's name of the format of a block, empty if it has none.
func formatOf(b chat.Block) string {
	kind, _, _ := strings.Cut(b.MimeType, ";")
	switch {
	case kind == "" && b.Type == "image" && b.Media():
		kind = wire.ImageType(b.Data)
	case kind == "" && b.Media():
		kind, _, _ = strings.Cut(http.DetectContentType(b.Data), ";")
	case kind == "":
		return formatOfName(b.Text)
	}
	return formats()[b.Type+" "+kind]
}

// formatOfName returns the format by the end of an address.
func formatOfName(address string) string {
	end := strings.ToLower(address[strings.LastIndexByte(address, '.')+1:])
	if end == "jpg" {
		end = "jpeg"
	}
	for _, format := range formats() {
		if format == end {
			return format
		}
	}
	return ""
}

// formats are the names of the formats by the type of a block and the media type.
func formats() map[string]string {
	return map[string]string{
		"image image/png": "png", "image image/jpeg": "jpeg", "image image/jpg": "jpeg", "image image/gif": "gif", "image image/webp": "webp",
		"file application/pdf": "pdf", "file text/csv": "csv", "file text/html": "html", "file text/plain": "txt", "file text/markdown": "md",
		"file application/msword": "doc", "file application/vnd.ms-excel": "xls",
		"file application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
		"file application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":       "xlsx",
		"video video/mp4": "mp4", "video video/quicktime": "mov", "video video/x-matroska": "mkv", "video video/webm": "webm",
		"video video/x-flv": "flv", "video video/mpeg": "mpeg", "video video/x-ms-wmv": "wmv", "video video/3gpp": "three_gp",
	}
}
