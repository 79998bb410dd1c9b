package mediafile

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/mediatype"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Block returns the block of a file that a caller of a server attaches. kind is the type of the
// block (image, audio, video or file) if the caller names it; empty means that the content decides,
// which may be a text, too. declared is the media type that the caller names, or empty; see
// mediatype.Of.
func Block(kind string, data []byte, declared string) (*chat.Block, error) {
	mime, err := typeOfKind(kind, declared, data)
	switch {
	case len(data) == 0:
		return nil, errors.New("the file is empty")
	case err != nil:
		return nil, err
	case kind == "" && isText(mime, data):
		if !utf8.Valid(data) {
			return nil, fmt.Errorf("a text of type %s must be UTF-8", mime)
		}
		return &chat.Block{Type: "text", Text: string(data), MimeType: mime}, checkSize("file", int64(len(data)))
	case kind == "":
		kind = mediatype.KindOf(mime)
	}
	if _, err = checked(kind, data); err != nil {
		return nil, err
	}
	return &chat.Block{Type: kind, Data: data, MimeType: mime}, nil
}

// isText reports whether data of a media type is sent as a text, such as JSON.
func isText(mime string, data []byte) bool {
	return strings.HasPrefix(mime, "text/") || mediatype.KindOf(mime) == "file" && mime != "application/pdf" && mediatype.IsText(data)
}

// typeOfKind returns the media type of the data of a block of a kind, empty if it is not known.
func typeOfKind(kind, declared string, data []byte) (string, error) {
	mime, err := mediatype.Of(declared, data)
	if err != nil || kind != "image" && kind != "audio" && kind != "video" {
		return mime, err
	}
	if named, _ := mediatype.Of(declared, nil); named != mediatype.Binary && mediatype.KindOf(named) != kind {
		return "", fmt.Errorf("%s is not a media type of type %s", declared, kind)
	}
	if mediatype.KindOf(mime) != kind {
		return "", mediatype.Check(kind, data)
	}
	return mime, nil
}
